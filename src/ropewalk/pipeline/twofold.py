"""Plans for timetables that give every device two pieces of the model, of one copy of it or of two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import homes, pieces_each
from ropewalk.strategy.part import Part


def twofold_plans(costs: Costs, schedule: str, micro_batch: int, recompute: bool) -> Iterator[PipelinePlan]:
    """For every number of devices that divides the GPUs, pieces as even as they can be, hand-overs counted or not.

    Devices are consecutive GPUs, all of the same size: pieces of one device follow each other through the whole
    pipeline, so unequal devices would wait for each other twice.
    """
    gpus, states = costs.machines.gpus, costs.states
    for devices in range(2, gpus + 1):
        pieces = devices * pieces_each(schedule)
        if gpus % devices or pieces > states:
            continue
        each = gpus // devices
        for tensor in costs.terms.tensor:
            if each % tensor or (costs.terms.whole_samples and each // tensor > micro_batch):
                continue
            prices = costs.prices.at(costs.share(micro_batch, each // tensor), tensor)
            sets = [tuple(range(home * each, (home + 1) * each)) for home in homes(schedule, devices)]
            work = prices.forward_s + prices.backward_s
            # There and back, as a piece is passed twice.
            sends = 2 * costs.entering(sets, micro_batch)
            for bounds in dict.fromkeys((even_cuts(work, pieces), even_cuts(work, pieces, sends))):
                spans = zip(pairwise(bounds), sets, strict=True)
                stages = tuple(Part(first, end - 1, gpus, tensor) for (first, end), gpus in spans)
                yield PipelinePlan(stages, schedule, micro_batch, costs.terms.global_batch // micro_batch, recompute)


def even_cuts(sums: Floats, pieces: int, entering: Floats | None = None) -> tuple[int, ...]:
    """Bounds of `pieces` consecutive pieces of which the longest is as short as it can be; `sums` are running sums.

    `entering[k, s]` is what piece k costs besides where it begins with state s, if that counts like a piece.

    >>> even_cuts(np.array([0.0, 1, 2, 6, 7, 8]), 3)
    (0, 2, 3, 5)
    >>> even_cuts(np.array([0.0, 1, 2, 6, 7, 8]), 2, np.array([[0.0] * 6, [0, 0, 0, 9, 0, 0]]))
    (0, 2, 5)
    """
    states = len(sums) - 1
    longest = np.full((pieces + 1, states + 1), np.inf)
    behind = np.zeros((pieces + 1, states + 1), np.int64)
    longest[0, 0] = 0.0
    for piece in range(1, pieces + 1):
        for end in range(piece, states - pieces + piece + 1):
            starts = slice(piece - 1, end)
            value = np.maximum(longest[piece - 1, starts], sums[end] - sums[starts])
            if entering is not None:
                value = np.maximum(value, entering[piece - 1, starts])
            at = int(value.argmin())
            longest[piece, end], behind[piece, end] = value[at], piece - 1 + at
    bounds = [states]
    for piece in range(pieces, 0, -1):
        bounds.append(int(behind[piece, bounds[-1]]))
    return tuple(reversed(bounds))
