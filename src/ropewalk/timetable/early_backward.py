"""Backward passes as early as possible: 1F1B with as many forward passes ahead as memory and links want."""

from __future__ import annotations

from ropewalk.errors import StrategyError
from ropewalk.timetable.clock import StageTimes, TimetableRun, run
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.warm_up import check_size, with_warm_up


def early_backward(devices: int, micro_batches: int, limit: int | None = None, *, deep: bool = False) -> Timetable:
    """1F1B with a flush (Fan et al., DAPPLE, 2021): P_A, or P_B where it is `deep`.

    Device i runs min(S - i, limit) forward passes ahead; deep, min(2 (S - i) - 1, limit), which is the same rule for
    the pipeline in which every hand-over is a stage of its own. `limit` is how many micro-batches fit in memory.

    >>> print(early_backward(2, 3, deep=True))
    1f1b-deep: 2 devices, 2 pieces, 3 micro-batches
    0  0F0 0F1 0F2 0B0 0B1 0B2
    1  1F0 1B0 1F1 1B1 1F2 1B2
    """
    name = "1f1b-deep" if deep else "1f1b"
    check_size(name, devices, micro_batches)
    most = micro_batches if limit is None else min(limit, micro_batches)
    if most < 1:
        raise StrategyError(
            f"timetable {name}: memory holds {limit} micro-batches: "
            "make micro-batches smaller, recompute, or cut the model into more stages"
        )
    ahead = [2 * (devices - i) - 1 if deep else devices - i for i in range(devices)]
    return with_warm_up(name, [min(wanted, most) for wanted in ahead], micro_batches)


def gain_of_depth(times: StageTimes) -> float:
    """By how much a long step of equal stages is faster with the deep warm-up than with the shallow one.

    The shallow warm-up keeps S micro-batches under way, the round trip of one takes S stages and 2 (S - 1) hand-overs,
    so each micro-batch costs (S - 1) / S hand-overs there and back on top of its stage. The deep one hides them all
    while a hand-over there and back takes no longer than a stage.
    """
    return times.communication_ratio * (times.pieces - 1) / times.pieces


def by_rule(times: StageTimes, micro_batches: int, limit: int | None = None, *, worth: float = 0.05) -> Timetable:
    """DAPPLE's choice: deep where communication is comparable to compute, shallow where it is negligible.

    What is negligible is for the caller to say: a gain of less than `worth`.
    """
    return early_backward(times.pieces, micro_batches, limit, deep=gain_of_depth(times) >= worth)


def by_clock(times: StageTimes, micro_batches: int, limit: int | None = None) -> TimetableRun:
    """The faster of the two, by the clock; the shallow one, which keeps less, where both take as long.

    Deeper also helps stages that differ, without any communication.
    """
    shallow, deep = (
        run(early_backward(times.pieces, micro_batches, limit, deep=deep), times) for deep in (False, True)
    )
    return deep if deep.makespan < shallow.makespan else shallow
