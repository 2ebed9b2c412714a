"""What is published about the jobs of real clusters, as data: how many GPUs they take and how long they run.

The two histograms of sizes and the corrected distribution of TPU v4 slices are those that the vClos authors' simulators
hold (10,000 and 18,825 jobs). An earlier list of slices there is not monotone and gives one size a negative
probability; it is deliberately absent. Means and medians are from the summaries of the Acme release.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError


@dataclass(frozen=True)
class Sizes:
    """A distribution of job sizes: sizes in GPUs and what share of jobs has at most that many.

    >>> TPU_V4_SLICES.at(np.array([0.0, 0.29, 0.5, 1.0])).tolist()
    [32, 32, 128, 2048]
    """

    name: str
    gpus: tuple[int, ...]
    cumulative: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.gpus) != len(self.cumulative) or not self.gpus:
            raise ClusterError(f"sizes {self.name}: give as many shares as sizes, and at least one")
        if any(after <= before for before, after in pairwise((0, *self.gpus))):
            raise ClusterError(f"sizes {self.name}: {self.gpus} is not ascending from 1: sort the sizes")
        if any(after < before for before, after in pairwise((0.0, *self.cumulative))):
            raise ClusterError(f"sizes {self.name}: the shares go down: give cumulative shares")
        if abs(self.cumulative[-1] - 1) > 1e-9:
            raise ClusterError(f"sizes {self.name}: the shares end at {self.cumulative[-1]:g}: end at 1")

    @classmethod
    def of_counts(cls, name: str, counts: dict[int, int]) -> Sizes:
        total = sum(counts.values())
        if total <= 0 or min(counts.values()) < 0:
            raise ClusterError(f"sizes {name}: there are {total} jobs: give counts of 0 or more, not all 0")
        sums = np.cumsum([counts[size] for size in sorted(counts)])
        return cls(name, tuple(sorted(counts)), tuple((sums / total).tolist()))

    def shares(self) -> tuple[float, ...]:
        """What share of jobs has exactly that size."""
        return tuple(after - before for before, after in pairwise((0.0, *self.cumulative)))

    def at(self, quantiles: NDArray[np.float64]) -> NDArray[np.int64]:
        """The size that this share of jobs does not exceed."""
        at = np.searchsorted(np.array(self.cumulative), quantiles - 1e-12)
        return np.array(self.gpus)[np.minimum(at, len(self.gpus) - 1)]

    def up_to(self, most: int) -> Sizes:
        """The same with everything larger counted as `most`, which is how a smaller cluster is asked."""
        kept = [size for size in self.gpus if size < most]
        if len(kept) == len(self.gpus):
            return self
        return Sizes(f"{self.name}<={most}", (*kept, most), (*self.cumulative[: len(kept)], 1.0))


@dataclass(frozen=True)
class Durations:
    """Log-normal run times, told by their median and mean, as logs are summarised; clipped and floored if asked.

    >>> Durations("even", median_s=60.0, mean_s=60.0).sigma
    0.0
    """

    name: str
    median_s: float
    mean_s: float
    shortest_s: float = 1.0
    longest_s: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 < self.median_s <= self.mean_s:
            raise ClusterError(
                f"durations {self.name}: a log-normal has a mean of at least its median, not {self.mean_s:g} s and "
                f"{self.median_s:g} s: exchange or fix them"
            )
        if not 0 < self.shortest_s <= self.longest_s:
            raise ClusterError(
                f"durations {self.name}: {self.shortest_s:g} s to {self.longest_s:g} s is not a range: "
                "give the shorter one first, above 0"
            )

    @property
    def sigma(self) -> float:
        """mean / median of a log-normal is exp(sigma^2 / 2)."""
        return float(np.sqrt(2 * np.log(self.mean_s / self.median_s)))

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        drawn = self.median_s * np.exp(self.sigma * generator.standard_normal(count))
        return np.clip(drawn, self.shortest_s, self.longest_s)


_POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
HISTOGRAM_10000 = Sizes.of_counts(
    "histogram-10000", dict(zip(_POWERS, (3951, 782, 879, 2517, 669, 658, 243, 207, 94), strict=True))
)
HISTOGRAM_18825 = Sizes.of_counts(
    "histogram-18825", dict(zip(_POWERS, (11136, 829, 1109, 4257, 400, 925, 76, 80, 13), strict=True))
)
TPU_V4_SLICES = Sizes(
    "tpu-v4-slices",
    (32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048),
    (0.29, 0.43, 0.605, 0.612, 0.729, 0.73, 0.849, 0.956, 0.993, 0.995, 1.0),
)
SIZES = {sizes.name: sizes for sizes in (HISTOGRAM_10000, HISTOGRAM_18825, TPU_V4_SLICES)}

DURATIONS = {
    "helios": Durations("helios", 206.0, 6652.0),
    "philly": Durations("philly", 874.0, 18006.0),
    "seren": Durations("seren", 122.0, 1414.0),
    "kalos": Durations("kalos", 124.0, 1260.0),
    "pai": Durations("pai", 481.0, 4787.0),
}
