"""From the servers that a scheduler has chosen to what the job gets there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import refused, servers_needed
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.shared import sharing


@dataclass(frozen=True, eq=False)
class GangRequest:
    """A job as schedulers see it: equal parts, each on one server."""

    job: str
    parts: int
    share: int
    """GPUs of a part: a whole server, or all of a job that is smaller than one."""
    room: Ints
    """How many parts every server could hold; together enough."""


Choose = Callable[[Occupancy, GangRequest], Ints]
"""The server of every part."""


def seating(choose: Choose) -> Allocate:
    """The allocator of a scheduler that chooses servers; jobs wait for GPUs and whole servers alone."""

    def allocate(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
        waits = refused(state, job, gpus)
        if waits is not None:
            return waits
        share = min(gpus, state.plant.gpus_per_server)
        asked = GangRequest(job, servers_needed(state, gpus), share, state.free_in_server // share)
        servers = np.sort(choose(state, asked))
        return sharing(state, job, gpus, seats_in(state, servers, gpus))

    return allocate


def seats_in(state: Occupancy, servers: Ints, gpus: int) -> Ints:
    """GPUs of servers, in order: evenly where that is possible, else with the last one not full."""
    from ropewalk.tenancy import _seats_kernel as kernel

    size = state.plant.gpus_per_server
    if len(servers) == 1 and gpus <= size:
        (server,) = servers.tolist()
        seats: Ints = kernel.inside_one_server(state.free_gpus, state.free_in_server, server, server + 1, size, gpus)
        return seats
    share = gpus // len(servers) if gpus % len(servers) == 0 else size
    every = servers[:, None] * size + np.arange(share)
    return np.ascontiguousarray(every.ravel()[:gpus])
