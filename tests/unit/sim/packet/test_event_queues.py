"""The near wheel and the far heap give out events by (time, sequence), as a sorted list does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packet_fabrics import star, together
from packet_kernels import far_drop, far_pop, far_push, move_cursor, near_pop, near_push

from ropewalk.routing import shortest
from ropewalk.sim.packet import PacketSettings, Roce
from ropewalk.sim.packet.network import build_world
from ropewalk.sim.packet.world import BUCKET_SHIFT, World

HOSTS = 6


def _world() -> World:
    src = np.arange(1, HOSTS)
    dst = np.zeros(HOSTS - 1, np.int64)
    return build_world(together(src, dst, 1e4), shortest(star(HOSTS), src, dst), PacketSettings(Roce()))


def _horizon(world: World) -> int:
    return (len(world.near_slots) - 2) << int(world.knobs[BUCKET_SHIFT])


@given(st.data())
def test_the_near_queue_is_a_sorted_list(data: st.DataObject) -> None:
    world = _world()
    horizon, events = _horizon(world), len(world.near)
    now, sequence, pending = 0, 0, {}
    for _ in range(data.draw(st.integers(1, 60))):
        free = [event for event in range(events) if event not in pending]
        if free and data.draw(st.booleans()):
            event = data.draw(st.sampled_from(free))
            # Few distinct delays, so that ties are common, and the longest one that fits.
            time = now + data.draw(st.sampled_from([0, 1, 2, 1000, horizon // 3, horizon]))
            near_push(world, event, time)
            pending[event] = (time, sequence)
            sequence += 1
        elif pending:
            expected = min(pending, key=lambda event: pending[event])
            assert near_pop(world) == expected
            now = pending.pop(expected)[0]
        else:
            assert near_pop(world) == -1
            now += data.draw(st.integers(0, 10 * horizon))
            move_cursor(world, now >> int(world.knobs[BUCKET_SHIFT]))
    for expected in sorted(pending, key=lambda event: pending[event]):
        assert near_pop(world) == expected
    assert near_pop(world) == -1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.sampled_from(["push", "drop", "pop"])), max_size=60))
def test_the_far_queue_is_a_sorted_list_from_which_events_can_be_taken(steps: list[tuple[int, int, str]]) -> None:
    world = _world()
    pending: dict[int, tuple[int, int]] = {}
    for sequence, (event, time, what) in enumerate(steps):
        if what == "push":
            far_push(world, event, time)
            pending[event] = (time, sequence)
        elif what == "drop":
            far_drop(world, event)
            pending.pop(event, None)
        else:
            expected = min(pending, key=lambda known: pending[known], default=-1)
            assert far_pop(world) == expected
            pending.pop(expected, None)
    for expected in sorted(pending, key=lambda known: pending[known]):
        assert far_pop(world) == expected


@pytest.mark.parametrize("latency", [0.0, 1e-6, 1e-3])
def test_the_wheel_spans_the_longest_packet_on_the_longest_link(latency: float) -> None:
    src, dst = np.array([1]), np.array([0])
    routes = shortest(star(2, latency=latency), src, dst)
    world = build_world(together(src, dst, 1e4), routes, PacketSettings(Roce()))
    longest = int((world.wire[world.links["speed_class"], -1] + world.links["latency"]).max())
    assert _horizon(world) >= longest
