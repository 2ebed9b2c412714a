"""The two planned orders: fused and cut sums (PACE), and fused sums that stream.

Both search groupings with the judge of `fusion`, lay the best preemptive order of each out as launches, and keep the
plan that is fastest as it will really run: start-ups of every cut included, one stream, a library that works in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.fusion import fuse
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import Sums, one_stream_sums
from ropewalk.overlap.launches import LaunchTimes, planned
from ropewalk.overlap.link import Link
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.tensors import Tensors

ROUNDS_IN_A_BLOCK = (2.0, 8.0, 32.0)
"""How many times as long as the rounds of one collective the bytes of a block take."""
MOST_BLOCKS = 256
"""Blocks that are streamed at most: the search looks at pairs of them."""


@dataclass(frozen=True, eq=False)
class StreamedPlan:
    """Launches that stream blocks of tensors; a block is what arrives together."""

    blocks: Groups
    run: LaunchTimes
    """Of the blocks: its tensors are the numbers of blocks."""
    arrival_s: NDArray[np.float64]
    """By tensor."""

    @property
    def step_s(self) -> float:
        return self.run.step_s

    @property
    def groups(self) -> Groups:
        """Tensors that start up together."""
        members = [
            tuple(tensor for block in group for tensor in self.blocks.members[block])
            for group in self.run.launches.groups.members
        ]
        return Groups(tuple(members))


def fused_plan(tensors: Tensors, link: Link, *, widest: int | None = None) -> LaunchTimes:
    """The plan of PACE: groups that arrive as a whole, cut and ordered by urgency, across the end of the step.

    The judge of the dynamic program takes cuts for free. Where start-ups weigh so much that this misleads it, the
    groups of merged gradients, which need no cuts, are better, so both are laid out and timed.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> tensors = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)
    >>> fused_plan(tensors, Link(bandwidth=1)).step_s
    17.0
    """
    sums = one_stream_sums(tensors)
    return _fastest([planned(sums, link, groups) for groups in _groupings(tensors, sums, link, widest)])


def streamed_plan(
    tensors: Tensors,
    link: Link,
    *,
    rounds_s: float = 0.0,
    widest: int | None = None,
    arrivals: Sequence[Arrival] = (Arrival.THROUGH, Arrival.GATHERED),
    blockings: Sequence[Groups] = (),
) -> StreamedPlan:
    """The best plan in which launches may stream, in one of the ways `arrivals`; of equals the first.

    A tensor that moves on its own goes through the rounds of the collective once more. So small tensors are first put
    together in blocks that take several times as long as rounds do, and launches stream blocks. Blocks that are whole
    groups of the fused plan are tried too: then nothing streams unless it helps. `blockings` are tried instead of all
    these where they are given.
    """
    sums = one_stream_sums(tensors)
    plans = []
    tried = blockings or (*_fine_blocks(tensors, link, rounds_s), *_groupings(tensors, sums, link, widest))
    for blocks in tried:
        of_blocks = summed_blocks(sums, blocks)
        for arrival in arrivals:
            streams = fuse(of_blocks, link, arrival, rounds_s=rounds_s, widest=widest).groups
            for groups in (streams, Groups.singles(of_blocks.in_ready_order)):
                run = planned(of_blocks, link, groups, arrival, rounds_s)
                plans.append(StreamedPlan(blocks, run, run.arrival_s[blocks.group_of]))
    return min(plans, key=lambda plan: (plan.step_s, plan.run.launches.count))


def _fine_blocks(tensors: Tensors, link: Link, rounds_s: float) -> list[Groups]:
    smallest = tensors.total_bytes / MOST_BLOCKS
    if not rounds_s and len(tensors) <= MOST_BLOCKS:
        return [Groups.singles(tensors.in_ready_order)]
    caps = {max(times * rounds_s * link.throughput, smallest) for times in ROUNDS_IN_A_BLOCK}
    return [buckets(tensors, (cap,)) for cap in sorted(caps) if cap > 0]


def summed_blocks(sums: Sums, blocks: Groups) -> Sums:
    """Blocks of tensors as if each were one tensor: there when the last one is, urgent as the most urgent one."""
    members = [list(block) for block in blocks.members]
    return Sums(
        tuple(sums.names[block[0]] if len(block) == 1 else f"{sums.names[block[0]]} … {sums.names[block[-1]]}"
              for block in members),
        np.array([sums.head_s[block].max() for block in members]),
        np.array([sums.size_bytes[block].sum() for block in members]),
        np.array([sums.tail_s[block].max() for block in members]),
        sums.computing_s,
    )  # fmt: skip


def _groupings(tensors: Tensors, sums: Sums, link: Link, widest: int | None) -> list[Groups]:
    return [fuse(sums, link, widest=widest).groups, merged_gradients(tensors, link)]


def _fastest(runs: list[LaunchTimes]) -> LaunchTimes:
    return min(runs, key=lambda run: (run.step_s, run.launches.count))
