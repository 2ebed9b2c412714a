"""How long a synchronous pipeline takes, by the stage with the fewest bubbles: DAPPLE's pivot formula as it is printed.

The pivot works without a pause from its first forward pass to its last backward pass. Before it the pipeline fills,
behind it the last micro-batch runs back and gradients are added up; sums of stages behind the pivot hide behind the
backward passes of stages before them. It is exact when the last stage is the pivot and no transfer takes longer than
the stages beside it; with an earlier pivot it may say less than any timetable reaches (two stages of 10 and 9 in each
direction and 4 micro-batches: 80, where early backward takes 92).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PivotLatency:
    """A step in three parts."""

    pivot: int
    """The stage without bubbles; transfers count as stages where they were given."""
    filling_s: float
    """Until the first micro-batch has passed the pivot forward."""
    steady_s: float
    """Both passes of all other micro-batches on the pivot."""
    ending_s: float
    """From there until the last gradient is summed."""

    @property
    def seconds(self) -> float:
        return self.filling_s + self.steady_s + self.ending_s


def woven(stages: Sequence[float], transfers: Sequence[float]) -> list[float]:
    """Every transfer as a stage without weights: stages at 0, 2, …, transfers between."""
    mixed = [0.0] * (2 * len(stages) - 1)
    mixed[::2], mixed[1::2] = list(stages), list(transfers)
    return mixed


def pivot_latency(
    forward: Sequence[float], backward: Sequence[float], micro_batches: int, sums: Sequence[float]
) -> PivotLatency:
    """The step of a pipeline whose stages take these seconds for a micro-batch, and then sum gradients."""
    pivot, again = len(forward) - 1, micro_batches - 1
    for s in range(len(forward) - 2, -1, -1):
        between = sum(forward[a] + backward[a] for a in range(s + 1, pivot))
        if again * (forward[s] + backward[s]) > again * (forward[pivot] + backward[pivot]) + between:
            pivot = s
    ends = [sums[s] + sum(backward[s : pivot + 1]) for s in range(pivot + 1)]
    ends += [sums[s] - sum(backward[pivot + 1 : s]) for s in range(pivot + 1, len(forward))]
    return PivotLatency(pivot, sum(forward[: pivot + 1]), again * (forward[pivot] + backward[pivot]), max(ends))
