"""What TopoAdopt answers: a forest, and the proof of how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from ropewalk.collectives.forest import AllReduceForest, Forest

F = TypeVar("F", Forest, AllReduceForest)


@dataclass(frozen=True, eq=False)
class TopoAdopt(Generic[F]):
    """A forest that carries nearly as much as any schedule can."""

    forest: F
    bound: Fraction
    """Bytes/s that no schedule exceeds, proved by the prices of arcs."""
    guarantee: Fraction
    """The part of the optimum that was asked for; `proved_ratio` is never below."""
    chunks: int
    """Equal chunks of which every tree carries a whole number, in proportion to its rate."""
    iterations: int
    """Trees that were searched for, over all step sizes."""
    trees_found: int
    """Different ones among them."""

    @property
    def algbw(self) -> Fraction:
        """Bytes/s."""
        return self.forest.algbw

    @property
    def depth(self) -> int:
        return self.forest.depth

    @property
    def trees(self) -> int:
        """Trees that are left; in an all-reduce those that reduce and those that spread."""
        return self.forest.tree_count

    @property
    def proved_ratio(self) -> Fraction:
        """The part of the optimum that is surely carried."""
        return self.algbw / self.bound

    def check(self) -> None:
        """Prove the forest; see there."""
        self.forest.check()
