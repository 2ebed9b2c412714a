"""Parameter servers: workers push their gradients to one or several servers, which add them up and are pulled from."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import mirrored
from ropewalk.collectives.mesh import mesh
from ropewalk.collectives.program import Program, Round, arrows, only, refuse_too_many_arrows
from ropewalk.errors import ProgramError


def shared_servers(ranks: int, servers: int = 1) -> Program:
    """Shards of the parameters live on ranks 0 … servers-1, which are workers too; with N of them this is a mesh.

    >>> shared_servers(4).sent_chunks().tolist()
    [3, 1, 1, 1]
    """
    if not 1 <= servers <= ranks:
        raise ProgramError(f"{servers} servers do not fit on {ranks} ranks: give 1 to {ranks}, or dedicated servers")
    name = f"parameter server on {servers} of {ranks} workers"
    if servers == ranks > 1:
        return mesh(ranks).all_reduce(name)
    return _push_and_pull(name, ranks, ranks, np.arange(servers))


def dedicated_servers(workers: int, servers: int = 1) -> Program:
    """Ranks 0 … workers-1 train, ranks workers … workers+servers-1 only hold a shard of the parameters each.

    >>> dedicated_servers(4, servers=2).ranks
    6
    """
    if servers < 1:
        raise ProgramError(f"{servers} dedicated servers cannot hold the parameters: give at least 1")
    ranks = workers + servers
    return _push_and_pull(f"{servers} dedicated parameter servers", ranks, workers, np.arange(workers, ranks))


def _push_and_pull(name: str, ranks: int, workers: int, server: NDArray[np.int64]) -> Program:
    """Chunk s lives on rank server[s]; every worker but that rank itself pushes it there and pulls it back."""
    if workers < 1 or ranks < 2:
        raise ProgramError(f"{name}: {workers} workers among {ranks} ranks move nothing: give more workers")
    refuse_too_many_arrows(name, workers * len(server))
    shard, worker = np.nonzero(np.arange(workers) != server[:, None])
    push = [Round(arrows(worker, server[shard], 1, reduces=True), partial(_one_each, shard))]
    condition = only(ranks, np.arange(workers))
    return Program(name, ranks, len(server), (*push, *mirrored(push)), condition, condition)


def _one_each(chunk: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(len(chunk) + 1), chunk
