"""Small packet-level worlds for transports: incasts through one switch, run at once or event by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ropewalk.fabric import FabricDraft
from ropewalk.routing import Routes, shortest
from ropewalk.sim.packet import PacketSettings, PacketTrace, engine, simulate_packets
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.network import build_world, grown_pool
from ropewalk.task import Sketch, TaskGraph

LEAST_FREE = 128

Change = tuple[int, int, float]
"""Picoseconds, flow, new value."""


def incast_of(
    sizes: Sequence[float],
    *,
    starts: Sequence[float] = (),
    bandwidth: float = 5e9,
    latency: float | Sequence[float] = 1e-6,
) -> tuple[TaskGraph, Routes]:
    """Hosts 1, 2, … send one message each to host 0 through one switch; `latency` of all links, or of each host's."""
    sketch = Sketch()
    for number, size in enumerate(sizes):
        sketch.transfer(number + 1, 0, size, start_up=starts[number] if len(starts) else 0.0)
    graph = sketch.graph()
    draft = FabricDraft("incast")
    hosts = draft.add_hosts([f"h{host}" for host in range(len(sizes) + 1)])
    draft.add_links(hosts, draft.add_switches(["switch"], level=1), bandwidth, latency)
    return graph, shortest(draft.freeze(), graph.place, graph.peer)


def run_incast(
    sizes: Sequence[float], settings: PacketSettings, *, bandwidth: float = 5e9, latency: float = 1e-6
) -> PacketTrace:
    return simulate_packets(*incast_of(sizes, bandwidth=bandwidth, latency=latency), settings)


def step_through(
    graph: TaskGraph, routes: Routes, settings: PacketSettings, look: Callable[[w.World], None]
) -> w.World:
    """Run event by event and look at the world after each."""
    settings.check()
    world = build_world(graph, routes, settings)
    engine.start(world)
    look(world)
    while True:
        status = engine.run(world, int(w.NEVER) - 1, 1, LEAST_FREE)
        if status == engine.FINISHED:
            return world
        assert status in (engine.SLICE_OVER, engine.POOL_LOW)
        if status == engine.POOL_LOW:
            world = grown_pool(world)
        look(world)


def changes_of(column: int, graph: TaskGraph, routes: Routes, settings: PacketSettings) -> tuple[list[Change], w.World]:
    """Every change of a float column of any flow, and the world at the end."""
    log: list[Change] = []
    had = np.zeros(len(graph.place))

    def look(world: w.World) -> None:
        has = world.numbers[:, column]
        now = int(world.clock[w.NOW])
        log.extend((now, int(flow), float(has[flow])) for flow in np.flatnonzero(has != had))
        had[:] = has

    return log, step_through(graph, routes, settings, look)
