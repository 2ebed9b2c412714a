"""A number seen several times: its mean, and the interval in which the mean of all such numbers probably lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t at 97.5 % for 1, 2, ... degrees of freedom: half of a two-sided interval of 95 %."""
NORMAL = 1.960


@dataclass(frozen=True)
class Spread:
    """Values of one number, one for each seed.

    >>> Spread((1.0, 2.0, 3.0)).mean, round(Spread((1.0, 2.0, 3.0)).half_width, 2)
    (2.0, 2.48)
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean; 0 for a single value, of which nothing is known."""
        count = len(self.values)
        if count < 2:
            return 0.0
        mean = self.mean
        variance = sum((value - mean) ** 2 for value in self.values) / (count - 1)
        student = STUDENT[count - 2] if count - 2 < len(STUDENT) else NORMAL
        return student * sqrt(variance / count)

    @property
    def excludes_zero(self) -> bool:
        """Is the mean further from 0 than the interval is wide? Nothing is known of a single value."""
        return len(self.values) > 1 and abs(self.mean) > self.half_width

    def as_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "half_width": self.half_width, "values": list(self.values)}


def sooner(one: Sequence[float], other: Sequence[float]) -> Spread:
    """By which part the first numbers are below the second, seed by seed: what both have in common drops out.

    >>> sooner([5.0, 30.0], [10.0, 20.0]).values
    (0.5, -0.5)
    """
    return Spread(tuple(1 - a / b if b else 0.0 for a, b in zip(one, other, strict=True)))
