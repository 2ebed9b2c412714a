"""Run a task graph packet by packet over a routed fabric."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.progress import Count
from ropewalk.routing import Routes
from ropewalk.sim.packet import engine
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.network import build_world, grown_pool
from ropewalk.sim.packet.nic import LEAST_LEFT
from ropewalk.sim.packet.physics import check_world
from ropewalk.sim.packet.rounding import picoseconds
from ropewalk.sim.packet.sampling import Sampler
from ropewalk.sim.packet.settings import PacketSettings
from ropewalk.sim.packet.trace import PacketTrace
from ropewalk.task import TaskGraph

SLICE_EVENTS = 500_000
"""Events between two chances for Ctrl-C."""

MOST_HANDED_OVER = 1 << 18
"""Packets that are kept ready for what hosts put into their queues within one event."""

SLICE_S = 0.2
"""Seconds between two calls of the progress function, about."""


def simulate_packets(
    graph: TaskGraph,
    routes: Routes,
    settings: PacketSettings,
    *,
    ack_routes: Routes | None = None,
    progress: Count | None = None,
) -> PacketTrace:
    """The packet-level run of a task graph: every start, every end, every pause, mark and drop.

    A transfer becomes one flow (or several: `settings.spread`) of packets; its start-up is waited for at the sender,
    its bytes are whole. Acknowledgements take the way back over the same cables unless `ack_routes` says otherwise.

    >>> import numpy as np
    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.sim.packet import PacketSettings, Roce
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 1e6)
    >>> routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    >>> trace = simulate_packets(sketch.graph(), routes, PacketSettings(Roce()))
    >>> trace.makespan_ps, int(trace.drops.sum())
    (83923840, 0)
    """
    settings.check()
    graph.check()
    world = build_world(graph, routes, settings, ack_routes)
    sampler = None if settings.sample_every_s is None else Sampler(picoseconds(settings.sample_every_s), routes.fabric)
    least_free = _least_free(world, routes, settings)
    while world.clock[w.FREE_COUNT] < least_free:
        world = grown_pool(world)
    engine.start(world)
    told = perf_counter()
    while True:
        until = int(w.NEVER) - 1 if sampler is None else sampler.next_at
        status = engine.run(world, until, SLICE_EVENTS, least_free)
        if status == engine.FINISHED:
            break
        if status == engine.POOL_LOW:
            world = grown_pool(world)
        elif status == engine.TIME_REACHED and sampler is not None:
            sampler.take(world)
        elif status == engine.NOTHING_DUE:
            raise _stuck(world, graph, routes)
        if progress is not None and perf_counter() - told > SLICE_S:
            told = perf_counter()
            progress(int(world.clock[w.TASKS_DONE]), graph.tasks)
    if progress is not None:
        progress(graph.tasks, graph.tasks)
    check_world(world)
    return _trace(world, graph, routes, settings, sampler)


def _least_free(world: w.World, routes: Routes, settings: PacketSettings) -> int:
    """Packets that must be free before an event: as many as hosts may need within one."""
    least = int((routes.fabric.link_src < routes.fabric.hosts).sum()) + LEAST_LEFT
    if not settings.host_queue:
        return least
    return least + min(len(world.flows) * int(getattr(settings.transport, "buffer_segments", 1)), MOST_HANDED_OVER)


def _trace(
    world: w.World, graph: TaskGraph, routes: Routes, settings: PacketSettings, sampler: Sampler | None
) -> PacketTrace:
    """What a run has left behind."""
    links, tasks = world.links, world.tasks
    return PacketTrace(
        graph=graph,
        routes=routes,
        settings=settings,
        start_ps=tasks["start"].copy(),
        end_ps=tasks["end"].copy(),
        acknowledged_ps=tasks["sent_at"].copy(),
        events=int(world.clock[w.EVENTS]),
        hops=int(world.clock[w.HOPS]),
        pauses=links["pauses"].copy(),
        paused_ps=links["paused_time"].copy(),
        marks=links["marks"].copy(),
        drops=links["drops"].copy(),
        most_queued=links["most_queued"].copy(),
        wire_bytes=links["sent_bytes"].copy(),
        timeouts=_by_task(world, "timeouts"),
        samples=None if sampler is None else sampler.samples(world),
    )


def _by_task(world: w.World, column: str) -> NDArray[np.int64]:
    """A count of flows, added up for the transfers they belong to."""
    total = np.zeros(len(world.tasks), np.int64)
    np.add.at(total, world.flows["task"], world.flows[column])
    return total


def _stuck(world: w.World, graph: TaskGraph, routes: Routes) -> RouteError:
    """Nothing is due, but tasks are left: packets wait for each other in a circle of paused links."""
    fabric, classes = routes.fabric, int(world.knobs[w.CLASSES])
    paused = np.flatnonzero(world.queues["paused"].reshape(-1, classes).any(axis=1))
    left = int(graph.tasks - world.clock[w.TASKS_DONE])
    if len(paused):
        names = ", ".join(fabric.link_name(int(link)) for link in paused[:4])
        return RouteError(
            f"{left} tasks on {fabric.name} can never end: {len(paused)} links pause each other in a cycle "
            f"({names}, …): use up-down or dimension-order routes, more buffer, or a lossy fabric"
        )
    return RouteError(
        f"{left} tasks on {fabric.name} can never end: {int(world.clock[w.DROPS])} packets were dropped and are never "
        "retransmitted: use a transport with retransmission, or a larger buffer"
    )
