"""No run is shorter than any schedule: the bytes of the busiest link, waits and latency bound packets of any transport.

Max-min fair shares are one schedule among many, and not the shortest: packets may be below the flow level where they
serve first what others wait for. They may never be below what every schedule takes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from least_makespans import least_makespan
from random_transfers import random_transfers

from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.fabric.expression import fabric as read_fabric
from ropewalk.routing import router_for, shortest
from ropewalk.sim import simulate
from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.sim.packet import PacketSettings, Roce, simulate_packets
from ropewalk.sim.transports import TRANSPORTS
from ropewalk.task import Sketch, TaskGraph

EXACT = 1 - 1e-9
FABRICS = [
    read_fabric(name, bandwidth=5e9, latency=latency)
    for name, latency in (("switch:8", 1e-6), ("fat-tree:4", 1e-6), ("torus:4x4", 0.0), ("bcube:4,2", 1e-6))
]
worlds = st.tuples(st.sampled_from(FABRICS), st.integers(0, 100_000))


def _world(fabric: Fabric, seed: int):  # type: ignore[no-untyped-def]
    graph = random_transfers(fabric.hosts, seed)
    graph = replace(graph, amount=np.ceil(graph.amount / 10))  # a tenth of the bytes tells as much
    return graph, router_for(fabric).make(0)(fabric, graph.place, graph.peer)


@pytest.mark.parametrize("transport", list(TRANSPORTS))
def test_packets_take_at_least_what_any_schedule_takes(transport: str) -> None:
    use = LevelUse("packet", transport)

    @given(worlds)
    @settings(max_examples=25)
    def law(world: tuple[Fabric, int]) -> None:
        graph, routes = _world(*world)
        packets = run_at_level(graph, routes, use).trace.makespan
        assert packets >= least_makespan(graph, routes, use.payload_share()) * EXACT

    law()


@given(worlds, st.integers(0, 1000))
@settings(max_examples=60)
def test_flows_take_at_least_what_any_schedule_takes_whatever_goes_first(world: tuple[Fabric, int], order: int) -> None:
    """The fluid waits for the latency of a whole path before it sends, so it is compared without latencies."""
    fabric = replace(world[0], latency=np.zeros(world[0].links))
    graph, routes = _world(fabric, world[1])
    goes_first = np.random.default_rng(order).permutation(graph.tasks).astype(graph.priority.dtype)
    least = least_makespan(graph, routes)
    assert simulate(graph, routes).makespan >= least * EXACT
    assert simulate(replace(graph, priority=goes_first), routes).makespan >= least * EXACT


def _relay() -> tuple[TaskGraph, Fabric]:
    """Host a sends 1 MB to b and to c, and c relays its 1 MB to d once it is whole."""
    draft = FabricDraft("relay")
    hosts = draft.add_hosts(["a", "b", "c", "d"])
    draft.add_links(hosts, draft.add_switches(["s"], level=1), 1e9, 0.0)
    sketch = Sketch()
    sketch.transfer(0, 1, 1e6)
    relayed = sketch.transfer(0, 2, 1e6)
    sketch.transfer(2, 3, 1e6, after=[relayed])
    return sketch.graph(), draft.freeze()


def test_fair_shares_are_not_the_shortest_schedule() -> None:
    """Shared fairly, both leave after 2 ms and the relay ends after 3; sent one after the other, it ends after 2."""
    graph, fabric = _relay()
    routes = shortest(fabric, graph.place, graph.peer)
    assert simulate(graph, routes).makespan == pytest.approx(3e-3)
    first = replace(graph, priority=np.array([1, 0, 0], graph.priority.dtype))
    assert simulate(first, routes).makespan == pytest.approx(2e-3) == least_makespan(graph, routes)


def test_packets_that_go_first_are_below_fair_shares_and_above_every_schedule() -> None:
    """The same with packets without headers: strict priority brings the relay in by 2 ms and a packet."""
    graph, fabric = _relay()
    graph = replace(graph, priority=np.array([1, 0, 0], graph.priority.dtype))
    routes = shortest(fabric, graph.place, graph.peer)
    bare = PacketSettings(Roce(), header_bytes=0, ack_bytes=1)
    seconds = float(simulate_packets(graph, routes, bare).end_ps.max()) * 1e-12
    assert least_makespan(graph, routes) <= seconds < 2.1e-3
