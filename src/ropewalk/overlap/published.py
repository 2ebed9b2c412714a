"""The published schemes as exchanges on a ring: each with its best setting, in the better of two libraries.

A *phased* library sends a round, mixes it, and goes on to the next; a *piped* one cuts an operation into slices that
follow each other, so that it mixes one while it sends another. Which is better depends on the rounds of a ring, so
every scheme has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from ropewalk.choices import Choice, Choices
from ropewalk.overlap.buckets import DEFAULT_CAP_BYTES, MIB, buckets
from ropewalk.overlap.dear import THRESHOLDS_MIB
from ropewalk.overlap.exchange import ChunkExchange, ExchangeRun, Part, finished, halves_done, in_operations, run
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.launches import Launches
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.methods import WIDEST
from ropewalk.overlap.plans import fused_plan
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.tensors import Tensors
from ropewalk.palette import AMBER, BLUE, GREEN, GREY, PINK, PURPLE, RUST, SKY

SLICES = (1, 4, 16)
"""Phased, and piped in so many slices."""
PIECE_MIB = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
WINDOWS = (1, 2, 4)
"""Pieces that priority scheduling has handed over and that are not done."""
BESIDE_EACH_OTHER = (2, 4, 8)
"""The same where they are carried side by side."""
MOST_PIECES = 400
"""Pieces of a step beyond which smaller ones are not tried."""
MOST_MESSAGES = 150_000
"""Messages of a rank in a step beyond which operations are not cut into slices."""

BESIDE = "beside"
"""The one scheme of the table that nobody published: it shows what a library would gain by running pieces beside each
other without fusing them."""

Scheme = Callable[[Tensors, RankRing], ExchangeRun]


def first_come(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """Whole tensors in order of readiness, then a barrier."""
    return _fastest(_grouped(tensors, ring, Groups.singles(tensors.in_ready_order)))


def ddp_buckets(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """PyTorch's buckets at its default size."""
    return _fastest(_grouped(tensors, ring, buckets(tensors, (DEFAULT_CAP_BYTES,))))


def best_buckets(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """The same with the best bucket size."""
    distinct = {buckets(tensors, (size * MIB,)).members: size for size in THRESHOLDS_MIB}
    return _fastest(one for members in distinct for one in _grouped(tensors, ring, Groups(members)))


def merged_by_waiting(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """MG-WFBP's groups."""
    groupings = (merged_gradients(tensors, ring.link(piped=piped)) for piped in (True, False))
    return _fastest(one for groups in groupings for one in _grouped(tensors, ring, groups))


def by_priority(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """ByteScheduler: pieces by the order of the next forward pass, few on their way, carried one after the other."""
    return _fastest(
        run(in_operations(pieces, slices=slices, window=window), tensors, ring)
        for pieces in _cut_in_pieces(tensors)
        for window, slices in product(WINDOWS, _slices(ring, len(pieces))[:2])
    )


def side_by_side(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """The same on a library that runs the pieces on their way side by side, as collectives seldom do."""
    return _fastest(
        run(in_operations(pieces, window=window, serial=False), tensors, ring)
        for pieces in _cut_in_pieces(tensors)
        for window in BESIDE_EACH_OTHER
    )


def _cut_in_pieces(tensors: Tensors) -> Iterator[list[list[Part]]]:
    """Tensors cut by several sizes, in the order of the next forward pass."""
    for most in (np.inf, *(size * MIB for size in PIECE_MIB)):
        pieces = [
            [(tensor, part)] for tensor, size in enumerate(tensors.size_bytes.tolist()) for part in _pieces(size, most)
        ]
        if len(pieces) <= max(MOST_PIECES, 2 * len(tensors)):
            yield pieces


def fused_and_cut(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """PACE: groups cut and ordered by what waits behind them, in an order that is fixed beforehand."""
    runs = []
    for piped in (True, False):
        launched = _launched(tensors, fused_plan(tensors, ring.link(piped=piped), widest=WIDEST).launches)
        slices = _slices(ring, len(launched))
        runs += [run(in_operations(launched, slices=count), tensors, ring) for count in slices]
    return _fastest(runs)


def taken_apart(tensors: Tensors, ring: RankRing) -> ExchangeRun:
    """DeAR: reduce-scatters during the backward pass, a barrier, all-gathers before the forward pass."""
    distinct = {buckets(tensors, (size * MIB,)).members for size in THRESHOLDS_MIB}
    return _fastest(
        _halves(tensors, ring, _operations(tensors, Groups(members)), slices)
        for members in sorted(distinct)
        for slices in _slices(ring, len(members))
    )


PUBLISHED: Choices[Choice[Scheme]] = Choices(
    "scheme",
    (
        Choice("fifo", first_come, "every tensor when it is ready, then a barrier", title="first come", colour=GREY),
        Choice("buckets", ddp_buckets, "25 MiB buckets as they fill, then a barrier", title="PyTorch DDP",
               colour=AMBER),
        Choice("best-buckets", best_buckets, "buckets of the best size, then a barrier", title="best bucket size",
               colour=SKY),
        Choice("merged", merged_by_waiting, "merged where waiting is shorter than a start-up, then a barrier",
               title="MG-WFBP", colour=RUST),
        Choice("priority", by_priority, "partitions by priority with limited credit, across the barrier",
               title="ByteScheduler", colour=BLUE),
        Choice(BESIDE, side_by_side, "partitions by priority, those in flight concurrently",
               title="ByteScheduler, concurrent", colour=PURPLE),
        Choice("dear", taken_apart, "reduce-scatters, a barrier, all-gathers in forward "
            "order", title="DeAR", colour=PINK),
        Choice("fused", fused_and_cut, "fused, partitioned and ordered in advance, across the barrier", title="PACE",
               colour=GREEN),
    ),
)  # fmt: skip
"""What the streamed all-reduce stands beside."""


def _slices(ring: RankRing, operations: int) -> list[int]:
    return [count for count in SLICES if count == 1 or count * operations * 2 * ring.rounds <= MOST_MESSAGES]


def _grouped(tensors: Tensors, ring: RankRing, groups: Groups) -> Iterator[ExchangeRun]:
    operations = _operations(tensors, groups)
    for slices in _slices(ring, len(operations)):
        yield run(in_operations(operations, slices=slices, barrier=True), tensors, ring)


def _operations(tensors: Tensors, groups: Groups) -> list[list[Part]]:
    return [[(tensor, float(tensors.size_bytes[tensor])) for tensor in group] for group in groups.members]


def _pieces(size_bytes: float, largest: float) -> list[float]:
    count = max(1, int(np.ceil(size_bytes / largest)))
    return [float(size_bytes) / count] * count


def _launched(tensors: Tensors, plan: Launches) -> list[list[Part]]:
    """Launches of fused groups: a part of a group is that part of each of its tensors."""
    numbers = np.cumsum(plan.begins) - 1
    totals = [float(tensors.size_bytes[list(group)].sum()) for group in plan.groups.members]
    operations = []
    for number in range(plan.count):
        own = numbers == number
        group = int(plan.group[own][0])
        share = float(plan.size_bytes[own].sum()) / totals[group] if totals[group] else 1.0
        operations.append(
            [(tensor, share * float(tensors.size_bytes[tensor])) for tensor in plan.groups.members[group]]
        )
    return operations


def _halves(tensors: Tensors, ring: RankRing, operations: list[list[Part]], slices: int) -> ExchangeRun:
    reduces = in_operations(operations, slices=slices)
    scattered, sent, added = halves_done(reduces, ring, reduces.chunks.ready_s(tensors), reduces=True)
    barrier = max(float(scattered.max()), tensors.backward_end_s)
    by_need = np.argsort([min(tensor for tensor, _ in operation) for operation in operations], kind="stable")
    rank = np.empty(len(operations), np.int64)
    rank[by_need] = np.arange(len(operations))
    gathers: ChunkExchange = replace(reduces, unit_key=rank)
    done, sent_later, _ = halves_done(gathers, ring, np.full(len(gathers.chunks), barrier), reduces=False)
    chunks = len(gathers.chunks)
    both = [np.concatenate([first.reshape(chunks, -1, 2), second.reshape(chunks, -1, 2)], axis=1).reshape(-1, 2)
            for first, second in ((sent, sent_later), (added, np.zeros_like(sent_later)))]  # fmt: skip
    return finished(gathers, tensors, done, both[0], both[1])


def _fastest(runs: Iterable[ExchangeRun]) -> ExchangeRun:
    """Of equals the one with the fewest operations."""
    return min(runs, key=lambda found: (found.step_s, found.exchange.operations))
