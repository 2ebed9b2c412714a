"""The baseline: what people get who follow Megatron-LM's guide and leave its defaults alone."""

from __future__ import annotations

import numpy as np

from ropewalk.planner.pricing import Priced

ABOUT = "1F1B, rings, 25 MiB buckets, default placement, the least model parallelism that fits"


def plain_choice(priced: Priced) -> int:
    """The candidate that fits with the least of everything.

    No sharding, no recomputation, no sequence, context or expert parallelism, micro-batches of one sample, 1F1B; tensor
    and pipeline parallelism as little as memory allows, tensor first, which stays inside a server. Where nothing fits
    like that, first recomputation is turned on, then sharding.
    """
    fits = np.flatnonzero(priced.fits)
    column = priced.candidates.column
    schedules = priced.candidates.space.schedules
    unusual = np.array([name != "1f1b" for name in schedules])[column("schedule")]
    keys = [
        column("zero"), column("recompute"), unusual, column("context"), column("sequence"),
        column("tensor") * column("pipeline"), column("pipeline"), column("expert"), column("micro_batch"),
        column("exchange"), column("folded"),
    ]  # fmt: skip
    order = np.lexsort([np.asarray(key)[fits] for key in reversed(keys)])
    return int(fits[order[0]])
