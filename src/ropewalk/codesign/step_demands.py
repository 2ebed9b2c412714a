"""What any step asks of the cables between servers: its all-reduces by group of servers, its other bytes by pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.task.step import Act, Step

ALONG_RINGS = {Act.ALL_REDUCE: 2.0, Act.ALL_GATHER: 1.0, Act.REDUCE_SCATTER: 1.0, Act.BROADCAST: 1.0, Act.REDUCE: 1.0}
"""How often each hop of a ring carries the bytes of a collective, as the ring grows long."""


def demands_of_step(step: Step, server_of_rank: NDArray[np.integer]) -> Demands:
    """The demands of a step whose rank r sits in server `server_of_rank[r]`; bytes inside a server do not count.

    A collective of k ranks in s servers puts its bytes on each of the s hops between them, whatever the rings are:
    it counts as an all-reduce over the s servers that does the same. Servers of a group stand in the order in which
    the group names them.

    >>> from ropewalk.task.step import StepSketch
    >>> sketch = StepSketch(4)
    >>> _ = sketch.collective(Act.ALL_REDUCE, range(4), 1e6), sketch.send(0, 3, 5.0), sketch.send(0, 1, 7.0)
    >>> demands = demands_of_step(sketch.step(), np.array([0, 0, 1, 1]))
    >>> demands.sums, demands.pairs.tolist()
    ((GroupSum(servers=(0, 1), size_bytes=1500000.0),), [[0.0, 5.0], [0.0, 0.0]])
    """
    server = np.asarray(server_of_rank, np.int64)
    servers = int(server.max(initial=0)) + 1
    pairs = np.zeros((servers, servers))
    sent = step.act == Act.SEND
    np.add.at(pairs, (server[step.rank[sent]], server[step.peer[sent]]), step.amount[sent])
    summed: dict[tuple[int, ...], float] = {}
    for group, members in enumerate(step.groups):
        _add_group(step, group, server[members], summed, pairs)
    np.fill_diagonal(pairs, 0.0)
    return Demands(servers, tuple(GroupSum(seat, size) for seat, size in summed.items() if size), pairs)


def _add_group(
    step: Step,
    group: int,
    server: NDArray[np.int64],
    summed: dict[tuple[int, ...], float],
    pairs: NDArray[np.float64],
) -> None:
    """Add what the collectives of a group send, whose members sit in these servers."""
    seat, ranks = tuple(dict.fromkeys(server.tolist())), len(server)
    if len(seat) < 2:
        return
    mine = step.group == group
    amounts = np.bincount(step.act[mine], step.amount[mine], minlength=max(Act) + 1)
    exchanged = float(amounts[Act.ALL_TO_ALL]) / ranks
    if exchanged:
        np.add.at(pairs, tuple(np.meshgrid(server, server, indexing="ij")), exchanged)
    hop = sum(times * float(amounts[act]) for act, times in ALONG_RINGS.items()) * (ranks - 1) / ranks
    if hop:
        # Each hop of an all-reduce over s servers carries 2(s-1)/s of its size.
        summed[seat] = summed.get(seat, 0.0) + hop * len(seat) / (2 * (len(seat) - 1))
