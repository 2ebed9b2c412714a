"""What Gloo sends for the collectives of torch.distributed, as a task graph: read from its source, checked by counters.

- all-reduce: one ring in which every rank sends to the one before it, a reduce-scatter and then an all-gather;
- reduce-scatter: PyTorch runs the all-reduce and keeps a part;
- all-gather: one ring in which every rank sends to the one after it;
- all-to-all: every pair at once;
- broadcast: a binomial tree, nearest ranks first; a rank sends to all its children at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.collectives.act import Act
from ropewalk.errors import LabError
from ropewalk.lab.job import ITEM_BYTES
from ropewalk.task import Sketch, TaskGraph

RUNS = {
    Act.ALL_REDUCE: "a ring",
    Act.REDUCE_SCATTER: "the ring of a whole all-reduce",
    Act.ALL_GATHER: "a ring",
    Act.ALL_TO_ALL: "all pairs at once",
    Act.BROADCAST: "a binomial tree",
}
"""What Gloo runs for each collective, in words."""


def whole_items(size_bytes: int, ranks: int) -> int:
    """Whole numbers in the buffer of a rank, as many for every rank: what was asked for, or a little more."""
    return -(-size_bytes // (ITEM_BYTES * ranks)) * ranks


def gloo_tasks(act: Act, groups: Sequence[Sequence[int]], size_bytes: int) -> tuple[TaskGraph, list[list[int]]]:
    """The transfers of all groups at once, and those of each.

    >>> graph, (tasks,) = gloo_tasks(Act.ALL_REDUCE, [[0, 1, 2]], 12)
    >>> len(tasks), graph.amount.tolist()[:2], graph.place.tolist()[:2], graph.peer.tolist()[:2]
    (12, [4.0, 4.0], [0, 1], [2, 0])
    """
    if act not in RUNS:
        raise LabError(f"Gloo has no {act.words} here: choose one of {', '.join(one.key for one in RUNS)}")
    sketch, made = Sketch(), []
    for hosts in groups:
        total = ITEM_BYTES * whole_items(size_bytes, len(hosts))
        if act in (Act.ALL_REDUCE, Act.REDUCE_SCATTER):
            made.append(_ring(sketch, hosts, 2 * (len(hosts) - 1), total / len(hosts), step=-1))
        elif act is Act.ALL_GATHER:
            made.append(_ring(sketch, hosts, len(hosts) - 1, total / len(hosts), step=1))
        elif act is Act.ALL_TO_ALL:
            made.append([sketch.transfer(src, dst, total / len(hosts)) for src in hosts for dst in hosts if src != dst])
        else:
            made.append(_tree(sketch, hosts, total))
    return sketch.graph(), made


def _ring(sketch: Sketch, hosts: Sequence[int], rounds: int, chunk_bytes: float, *, step: int) -> list[int]:
    """In every round a rank sends on what it got in the round before, after its own send of that round."""
    ranks, made, before = len(hosts), list[int](), list[int]()
    for _ in range(rounds):
        now = []
        for rank in range(ranks):
            after = [before[(rank - step) % ranks], before[rank]] if before else []
            now.append(sketch.transfer(hosts[rank], hosts[(rank + step) % ranks], chunk_bytes, after=after))
        made, before = made + now, now
    return made


def _tree(sketch: Sketch, hosts: Sequence[int], size_bytes: float) -> list[int]:
    """Rank r has it from the rank without its highest bit, and sends to r + 2^k for all higher k."""
    got: dict[int, int] = {}
    for rank in range(1, len(hosts)):
        parent = rank - (1 << (rank.bit_length() - 1))
        after = [got[parent]] if parent else []
        got[rank] = sketch.transfer(hosts[parent], hosts[rank], size_bytes, after=after)
    return list(got.values())
