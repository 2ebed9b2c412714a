"""Which level is enough, and the reason in words."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.mixer import Mixer
from ropewalk.collectives.table import program_on
from ropewalk.fabric import BCube, FatTree, IdealSwitch, Torus
from ropewalk.routing import dimension_rotated, dmodk, murmur, shortest
from ropewalk.sim import simulate
from ropewalk.sim.level import (
    WireFormat,
    choose_for_rounds,
    choose_for_run,
    contention_of_rounds,
    contention_of_run,
    expected_events,
)  # fmt: skip
from ropewalk.sim.transports import settings_named
from ropewalk.task import Sketch, lockstep

ROCE = WireFormat(1000, 48, 60)
RDMA = settings_named("rdma")


def _choice(logical: str, size: float, router=dmodk, transport="rdma", most_events=1e9):
    fabric = FatTree(4).build()
    rounds = lockstep(program_on(fabric, logical), size)
    routes = router(fabric, *rounds.all_pairs())
    return choose_for_rounds(rounds, routes, settings_named(transport), ROCE, most_events)


def test_fifteen_to_one_offers_the_last_link_fifteen_times_what_it_carries():
    fabric = IdealSwitch(16).build()
    rounds = lockstep(program_on(fabric, "ps"), 1e6)
    found = contention_of_rounds(rounds, shortest(fabric, *rounds.all_pairs()), ROCE)
    assert found.overload == pytest.approx(15)
    assert found.flows == 15
    assert fabric.link_dst[found.link] == 0


def test_a_mesh_over_planned_paths_offers_every_link_just_what_it_carries():
    fabric = FatTree(4).build()
    rounds = lockstep(program_on(fabric, "mesh"), 1e6)
    found = contention_of_rounds(rounds, dmodk(fabric, *rounds.all_pairs()), ROCE)
    assert found.overload == pytest.approx(1.0)
    assert not found.queues_grow


def test_a_run_is_looked_at_while_its_transfers_overlap():
    def overload(second_starts_after_first: bool) -> float:
        sketch = Sketch()
        first = sketch.transfer(1, 0, 1e6)
        sketch.transfer(2, 0, 1e6, after=[first] if second_starts_after_first else [])
        routes = shortest(IdealSwitch(3).build(), np.array([1, 2]), np.array([0, 0]))
        return contention_of_run(simulate(sketch.graph(), routes), ROCE).overload

    assert overload(second_starts_after_first=True) == pytest.approx(1.0)
    assert overload(second_starts_after_first=False) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("logical", "size", "router", "transport", "level", "part"),
    [
        ("ring", 1e6, dmodk, "rdma", "wire", "flows are accurate"),
        ("mesh", 64e6, dmodk, "rdma", "wire", "flows are accurate"),
        ("mesh", 64e3, dmodk, "rdma", "packet", "messages are so short"),
        ("mesh", 1e6, murmur(), "rdma", "packet", "times its bandwidth"),
        ("ps", 1e6, dmodk, "rdma", "packet", "15 flows offer"),
        ("ps", 1e6, dmodk, "rdma-pfc", "wire", "only paused"),
        ("ring", 1e6, dmodk, "hpcc", "packet", "below full"),
        ("ring", 1e6, dmodk, "tcp", "packet", "grows its windows per round trip"),
    ],
)
def test_the_choice_and_its_reason(logical, size, router, transport, level, part):
    choice = _choice(logical, size, router, transport)
    assert choice.level == level
    assert part in choice.why


def test_what_would_take_too_long_is_left_to_flows_with_a_warning():
    choice = _choice("ps", 1e9, most_events=1e6)
    assert choice.level == "wire"
    assert "may be inaccurate" in choice.why


def _run(fabric, *transfers: tuple[int, int, float], router=shortest, transport="rdma-pfc"):
    sketch = Sketch()
    for src, dst, size in transfers:
        sketch.transfer(src, dst, size)
    routes = router(fabric, *(np.array(column) for column in list(zip(*transfers, strict=True))[:2]))
    return choose_for_run(simulate(sketch.graph(), routes), settings_named(transport), ROCE)


def test_transfers_that_differ_and_share_a_link_need_packets_even_where_nobody_is_slowed_down():
    choice = _run(IdealSwitch(3).build(), (1, 0, 1e6), (2, 0, 3e6))
    assert choice.level == "packet"
    assert "which ends first" in choice.why


def test_a_host_that_relays_and_sends_itself_makes_somebody_wait():
    assert _run(Torus((5,)).build(), (0, 2, 1e6), (1, 2, 1e6)).level == "packet"
    assert _run(Torus((5,)).build(), (0, 1, 1e6), (1, 2, 1e6)).level == "wire"


def test_acknowledgements_fill_a_link_that_data_alone_would_not():
    # 0 sends to 1 at full speed. 1 sends to 2, whose answers come back over the link on which the data from 0 comes.
    choice = _run(IdealSwitch(3).build(), (0, 1, 1e6), (1, 2, 1e6))
    assert choice.level == "packet"
    assert _run(IdealSwitch(3).build(), (0, 1, 1e6), (1, 0, 1e6)).level == "wire"


def test_urgent_transfers_that_meet_are_found_beside_others_that_do_not():
    # In equal turns both hosts would offer host 0 a half; but what is urgent goes first, and twice what fits arrives.
    sketch = Sketch()
    for src, other in ((1, 3), (2, 4)):
        sketch.transfer(src, 0, 1e6, priority=0)
        sketch.transfer(src, other, 1e6, priority=1)
    graph = sketch.graph()
    run = simulate(graph, shortest(IdealSwitch(5).build(), graph.place, graph.peer))
    assert contention_of_run(run, ROCE).overload == pytest.approx(2.0)


def test_paths_of_one_transfer_that_are_shared_unevenly_need_packets():
    # Both ports of host 6 bring halves to host 11, one of them is shared with what goes to host 2.
    fabric = BCube(4, 2).build()
    choice = _run(fabric, (6, 11, 1e6), (6, 2, 1e6), router=dimension_rotated(), transport="rdma")
    assert choice.level == "packet"
    assert "shared unevenly" in choice.why
    assert _run(fabric, (6, 11, 1e6), router=dimension_rotated(), transport="rdma").level == "wire"


def test_receivers_that_add_up_need_no_packets():
    fabric = FatTree(4).build()
    rounds = lockstep(program_on(fabric, "ring"), 1e6, mixer=Mixer(1e9))
    assert choose_for_rounds(rounds, dmodk(fabric, *rounds.all_pairs()), RDMA, ROCE).level == "wire"


def test_a_run_without_transfers_needs_no_packets():
    sketch = Sketch()
    sketch.compute(0, 1.0)
    routes = shortest(IdealSwitch(2).build(), np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert choose_for_run(simulate(sketch.graph(), routes), RDMA, ROCE).level == "wire"


def test_events_grow_with_packets_and_links():
    routes = shortest(FatTree(4).build(), np.array([0, 0]), np.array([1, 15]))
    near, far = (expected_events(routes, np.array([pair]), np.array([1e6]), ROCE) for pair in (0, 1))
    assert near == 4 * 2 * 1000
    assert far == 3 * near
