"""Backward passes as early as possible: 1F1B with as many forward passes ahead as memory and links want."""

from __future__ import annotations

from ropewalk.errors import StrategyError
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
