"""One more stage of a straight pipeline, for every state at which it may end: the released planner's inner loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel


@kernel
def next_stage(
    seconds: Floats,
    sent: Floats,
    contains: NDArray[np.bool_],
    slowest: Floats,
    sets: Ints,
    rate: Floats,
    start_up: float,
    copies: int,
    source: Ints,
    target: Ints,
    chosen: Ints,
    targets: int,
) -> tuple[Floats, Ints, Ints]:
    """The least slowest stage of pipelines that end at each state on each set of occupied GPUs, and how it was reached.

    `slowest[o, k]` is that of pipelines one stage shorter that occupy set o and end behind state k, infinite if none
    does; `sets[o, k]` numbers the GPUs of their last stage. Way w leads from occupied set `source[w]` to `target[w]`
    by placing the stage on GPUs `chosen[w]`; `rate[a, b]` is bytes/s from GPUs a to GPUs b. Found are the state before
    the stage and the way; of equal ones the first state, then the first way.
    """
    states, ways = len(seconds), len(source)
    found = np.full((targets, states), np.inf)
    behind = np.full((targets, states), -1, np.int64)
    way_of = np.full((targets, states), -1, np.int64)
    for end in range(1, states):
        for before in range(end):
            if not contains[before, end]:
                continue
            own = (seconds[end] - seconds[before]) / copies
            for way in range(ways):
                prior = slowest[source[way], before]
                if prior == np.inf:
                    continue
                moved = start_up + sent[before] / rate[sets[source[way], before], chosen[way]]
                value = max(prior, own, moved)
                if value < found[target[way], end]:
                    found[target[way], end] = value
                    behind[target[way], end] = before
                    way_of[target[way], end] = way
    return found, behind, way_of
