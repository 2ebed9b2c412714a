"""Which warm-up early backward takes: DAPPLE's rule, and the clock."""

from ropewalk.timetable import Timetable, early_backward
from ropewalk.timetable.clock import StageTimes, TimetableRun, run


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
