"""Zero bubble for pieces and links as they are: the best of many greedy timetables, by the clock, within memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import StrategyError
from ropewalk.timetable.clock import StageTimes, TimetableRun, run
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.v_shape import v_homes, zero_bubble_v
from ropewalk.timetable.zero_bubble import zero_bubble_h1, zero_bubble_h2

Judge = Callable[[TimetableRun], float]


def makespan(seen: TimetableRun) -> float:
    """The end of the step."""
    return seen.makespan


def automatic(
    times: StageTimes,
    micro_batches: int,
    homes: Sequence[int] | None = None,
    *,
    kept: ArrayLike = 1.0,
    limit: float | None = None,
    judge: Judge = makespan,
) -> TimetableRun:
    """A zero-bubble timetable for these very times, no worse than those made by hand that fit.

    For one piece per device the heuristic of Qi et al. (2024) is among those tried. In all others devices take what is
    ready, gradients of inputs first, and gradients of weights when they would idle or memory is full; how far to go
    ahead and how long to put off is tried out. `homes` is the device of every piece, one piece per device unless given;
    a forward pass of piece i keeps `kept[i]` until its gradients of weights, and no device may keep more than `limit`
    (that of 1F1B's first device unless given).
    """
    place = np.arange(times.pieces) if homes is None else np.asarray(homes, np.int64)
    weights = np.array(np.broadcast_to(np.asarray(kept, np.float64), (times.pieces,)))
    if len(place) != times.pieces:
        raise StrategyError(f"timetable zb-auto: {len(place)} homes for {times.pieces} pieces: give one for each")
    devices = int(place.max()) + 1
    most = float(weights[place == 0].sum()) * devices if limit is None else limit
    best: TimetableRun | None = None
    for table in _candidates(times, micro_batches, place, weights, most, devices):
        if table.peak_kept(weights).max() > most * (1 + 1e-12):
            continue
        seen = run(table, times)
        if best is None or judge(seen) < judge(best):
            best = seen
    if best is None:
        raise StrategyError(
            f"timetable zb-auto: no timetable of {times.pieces} pieces on {devices} devices keeps at most {most:g}: "
            "allow more, recompute, or make micro-batches smaller"
        )
    return best


def _candidates(
    times: StageTimes, batches: int, place: Ints, kept: NDArray[np.float64], limit: float, devices: int
) -> Iterator[Timetable]:
    """Those made by hand for this shape, then greedy ones, from careful to bold."""
    from ropewalk.timetable._greedy_kernel import lay

    pieces = times.pieces
    if place.tolist() == list(range(devices)):
        yield from (zero_bubble_h1(devices, batches), zero_bubble_h2(devices, batches))
        yield from _stage_by_stage(times, batches, kept, limit)
    if place.tolist() == v_homes(devices):
        yield zero_bubble_v(devices, batches)
    below = np.arange(pieces, 0, -1)
    # As many micro-batches under way as fit on every device at once cannot block each other; more of them may.
    fit = int(limit / np.bincount(place, kept).max() * (1 + 1e-12))
    under_way = sorted({fit, fit * 4 // 3, fit * 3 // 2} - {0})
    bounds = (below, 2 * below - 1, np.full(pieces, batches), *(np.full(pieces, count) for count in under_way))
    put_off = (
        np.zeros(devices, np.int64),
        np.arange(devices),
        2 * np.arange(devices),
        np.full(devices, batches * pieces),
    )
    for ahead, late, patient in product(bounds, put_off, (False, True)):
        where, kind, piece, number = lay(
            place, times.forward, times.backward, times.weight, times.send_forward, times.send_backward, kept,
            limit, ahead, late, patient, devices, batches,
        )  # fmt: skip
        if len(where) < 3 * pieces * batches:
            continue  # memory ran full of micro-batches that block each other: a more careful one will do
        order = np.argsort(where, kind="stable")
        yield _timetable(where[order], kind[order], piece[order], number[order], place, batches)


def _stage_by_stage(times: StageTimes, batches: int, kept: NDArray[np.float64], limit: float) -> Iterator[Timetable]:
    """What the published heuristic gives for one piece per device, with each of its settings."""
    from ropewalk.timetable._stage_by_stage_kernel import lay_stage_by_stage

    stages = times.pieces
    for bubble, backward_first, greedy in product((True, False), repeat=3):
        laid = lay_stage_by_stage(
            times.forward, times.backward, times.weight, times.send_forward, times.send_backward, kept, limit, bubble,
            backward_first, greedy, batches,
        )  # fmt: skip
        if len(laid):
            where = np.repeat(np.arange(stages), 3 * batches)
            yield _timetable(where, laid[:, :, 0].ravel(), where, laid[:, :, 1].ravel(), np.arange(stages), batches)


def _timetable(device: Ints, kind: Ints, piece: Ints, number: Ints, place: Ints, batches: int) -> Timetable:
    """Passes sorted by device, in the order of each."""
    devices = int(place.max()) + 1
    return Timetable(
        name="zb-auto",
        row_start=np.concatenate(([0], np.cumsum(np.bincount(device, minlength=devices)))).astype(np.int64),
        kind=kind.astype(np.int8),
        piece=piece.astype(np.int32),
        micro_batch=number.astype(np.int32),
        paired=np.zeros(len(device), np.bool_),
        device_of_piece=place.astype(np.int32),
        micro_batches=batches,
    )
