"""What every packet-level run must obey, checked after each one: bytes that arrive, time that links need."""

from __future__ import annotations

import numpy as np

from ropewalk.errors import PhysicsError
from ropewalk.sim.packet import world as w


def check_world(world: w.World) -> None:
    """Refuse a run in which bytes were lost or made up, a task ended before it began, or a link outran its rate."""
    flows, paths = world.flows, world.paths
    wanted = np.zeros(len(world.received), np.int64)
    if len(flows):
        last = world.hops[paths["last"][flows["path_first"]]]
        np.add.at(wanted, world.links["dst"][last], flows["size"])
    if not np.array_equal(wanted, world.received):
        node = int(np.flatnonzero(wanted != world.received)[0])
        raise PhysicsError(f"host {node} was sent {wanted[node]} bytes and received {world.received[node]}")
    early = np.flatnonzero(world.tasks["end"] < world.tasks["start"])
    if len(early):
        raise PhysicsError(f"task {int(early[0])} ended before it began")
    if world.knobs[w.TRUNCATE]:
        return  # Times cut to whole nanoseconds let a link carry more than its rate.
    busy = world.links["sent_bytes"] / world.links["speed"] * 1e12
    # Times on the wire are whole picoseconds: each packet may be half of one short.
    slack = 1e-6 * busy + 1
    end = max(int(world.clock[w.NOW]), int(world.links["free_at"].max(initial=0)))
    if (busy - slack > end).any():
        raise PhysicsError(f"link {int(np.argmax(busy))} carried more than its rate allows")
