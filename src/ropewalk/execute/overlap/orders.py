"""Orders for PyTorch from the plans of `ropewalk.overlap`: buckets, priorities, fused and streamed launches.

Plans count bytes; orders count elements. Cuts are rounded to whole elements so that nothing is lost between pieces.
Tensors of a plan are named as the parameters of the module, and all have elements of one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import inf

import numpy as np

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece, fused
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.fusion import fuse
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import Launches, planned
from ropewalk.overlap.link import Link
from ropewalk.overlap.plans import ROUNDS_IN_A_BLOCK, StreamedPlan, summed_blocks
from ropewalk.overlap.scheduler import OverlapRun
from ropewalk.overlap.tensors import Tensors

ELEMENT_BYTES = 4
"""Of float32, in which most models keep gradients."""


def order_of_groups(tensors: Tensors, groups: Groups, *, element_bytes: int = ELEMENT_BYTES) -> CommunicationOrder:
    """Groups in their order, each one operation, all handed over at once, a barrier at the end: what DDP does.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> two = from_layers([8, 4], backward_s=[1, 1], forward_s=[1, 1], names=("first", "second"))
    >>> [launch.tensors for launch in order_of_groups(two, Groups.singles(two.in_ready_order)).launches]
    [('second',), ('first',)]
    """
    elements = elements_of(tensors, element_bytes)
    launches = [
        fused(*(Piece(tensors.names[member], 0, elements[member]) for member in group)) for group in groups.members
    ]
    return CommunicationOrder(tuple(launches), inf, barrier=True)


def order_of_run(run: OverlapRun, *, element_bytes: int = ELEMENT_BYTES) -> CommunicationOrder:
    """Pieces in the order in which the model of the scheduler carries them, with the credit of its policy."""
    tensors, pieces = run.tensors, run.pieces
    elements = elements_of(tensors, element_bytes)
    whole = tensors.size_bytes[pieces.tensor]
    each = np.minimum(run.policy.partition_bytes, whole)
    # A piece begins where the one before it ends: both are rounded from the same product.
    begins = np.rint(pieces.number * each / element_bytes)
    ends = np.rint(np.minimum((pieces.number + 1) * each, whole) / element_bytes)
    launches = []
    for piece in run.order.tolist():
        tensor, start, stop = int(pieces.tensor[piece]), int(begins[piece]), int(ends[piece])
        if start < stop:
            launches.append(fused(Piece(tensors.names[tensor], start, min(stop, elements[tensor]))))
    return CommunicationOrder(tuple(launches), run.policy.credit_bytes, run.policy.barrier)


def order_of_launches(
    tensors: Tensors, launches: Launches, *, credit_bytes: float = 0.0, element_bytes: int = ELEMENT_BYTES
) -> CommunicationOrder:
    """A plan whose jobs are tensors, as it is launched."""
    alone = Groups.singles(range(len(tensors)))
    return _laid_out(tensors, alone, launches, credit_bytes, element_bytes)


def order_of_streamed(
    tensors: Tensors, plan: StreamedPlan, *, credit_bytes: float = 0.0, element_bytes: int = ELEMENT_BYTES
) -> CommunicationOrder:
    """A streamed plan as it is launched: each block is an operation, blocks of a launch follow each other."""
    return _laid_out(tensors, plan.blocks, plan.run.launches, credit_bytes, element_bytes)


def streamed_through(tensors: Tensors, link: Link, *, rounds_s: float = 0.0) -> StreamedPlan:
    """The best streamed plan that a library without halves of all-reduces can run: blocks, one after the other.

    `rounds_s` is what an operation right behind another one costs besides its bytes.
    """
    sums = one_stream_sums(tensors)
    fine = [times * rounds_s * link.throughput for times in ROUNDS_IN_A_BLOCK] if rounds_s else []
    blockings = [
        Groups.singles(tensors.in_ready_order),
        fuse(sums, link).groups,
        *(buckets(tensors, (size,)) for size in fine),
    ]
    plans = []
    for blocks in blockings:
        of_blocks = summed_blocks(sums, blocks)
        streams = fuse(of_blocks, link, Arrival.THROUGH, rounds_s=rounds_s).groups
        for groups in (streams, Groups.singles(of_blocks.in_ready_order)):
            run = planned(of_blocks, link, groups, Arrival.THROUGH, rounds_s)
            plans.append(StreamedPlan(blocks, run, run.arrival_s[blocks.group_of]))
    return min(plans, key=lambda plan: (plan.step_s, plan.run.launches.count))


def _laid_out(
    tensors: Tensors, blocks: Groups, launches: Launches, credit_bytes: float, element_bytes: int
) -> CommunicationOrder:
    """What arrives together (a group, or a block of a streamed group) is a row of tensors, the most urgent first; the
    pieces of the plan cut this row where their bytes end."""
    if launches.arrival is Arrival.GATHERED:
        raise StrategyError(
            "a plan that reduces a whole group and then gathers tensor after tensor needs separate reduce-scatter "
            "and all-gather: plan with Arrival.THROUGH, which runs both tensor by tensor"
        )
    together = launches.arrival is Arrival.TOGETHER
    elements = elements_of(tensors, element_bytes)
    jobs = (launches.group if together else launches.tensor).tolist()
    rows = {
        job: _urgent_first(tensors, blocks, launches.groups.members[job] if together else (job,)) for job in set(jobs)
    }
    cuts = _cuts(jobs, launches.size_bytes.tolist(), {job: sum(elements[one] for one in rows[job]) for job in rows})
    numbers = (np.cumsum(launches.begins) - 1).tolist()
    made = []
    for _, members in groupby(range(len(jobs)), key=lambda piece: int(numbers[piece])):
        operations = (_between(rows[jobs[at]], elements, tensors.names, *cuts[at]) for at in members)
        if kept := tuple(operation for operation in operations if operation):
            made.append(OperationLaunch(kept))
    return CommunicationOrder(tuple(made), credit_bytes)


def _urgent_first(tensors: Tensors, blocks: Groups, members: Iterable[int]) -> list[int]:
    row = [tensor for block in members for tensor in blocks.members[block]]
    return sorted(row, key=lambda tensor: (-float(tensors.tail_s[tensor]), tensor))


def _cuts(jobs: Sequence[int], sizes: Sequence[float], length: dict[int, int]) -> list[tuple[int, int]]:
    """From which to which element of its row every piece goes; the last piece of a row takes what rounding left."""
    total = dict.fromkeys(length, 0.0)
    for job, size in zip(jobs, sizes, strict=True):
        total[job] += size
    last = {job: at for at, job in enumerate(jobs)}
    moved, done = dict.fromkeys(length, 0.0), dict.fromkeys(length, 0)
    cuts = []
    for at, (job, size) in enumerate(zip(jobs, sizes, strict=True)):
        moved[job] += size
        stop = length[job] if at == last[job] else round(moved[job] / total[job] * length[job])
        cuts.append((done[job], stop))
        done[job] = stop
    return cuts


def _between(
    row: Sequence[int], elements: Sequence[int], names: tuple[str, ...], start: int, stop: int
) -> tuple[Piece, ...]:
    """The pieces of tensors laid one behind the other that lie between two elements of the whole."""
    pieces, first = [], 0
    for tensor in row:
        begin, end = max(start, first), min(stop, first + elements[tensor])
        if begin < end:
            pieces.append(Piece(names[tensor], begin - first, end - first))
        first += elements[tensor]
    return tuple(pieces)


def elements_of(tensors: Tensors, element_bytes: int) -> list[int]:
    """Elements of every tensor."""
    counts = tensors.size_bytes / element_bytes
    if (counts != np.rint(counts)).any() or (counts < 1).any():
        odd = tensors.names[int(np.flatnonzero((counts != np.rint(counts)) | (counts < 1))[0])]
        raise StrategyError(
            f"{odd} of {tensors.model} is not a whole number of elements of {element_bytes} bytes: "
            "give the bytes of an element of its gradient, and leave tensors without elements out"
        )
    return [round(count) for count in counts.tolist()]
