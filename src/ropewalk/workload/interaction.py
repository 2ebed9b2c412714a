"""How the features of a recommendation model meet: dot products of every pair."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split


@dataclass(frozen=True)
class Interaction(Operator):
    """Dot products of all pairs of `features` vectors of `width` numbers, joined with the first vector.

    >>> Interaction(512, 27, 128).outputs
    479
    """

    batch: int
    features: int
    width: int

    @property
    def pairs(self) -> int:
        return self.features * (self.features - 1) // 2

    @property
    def outputs(self) -> int:
        return self.width + self.pairs

    def forward(self) -> tuple[Kernel, ...]:
        return (
            k.pointwise("map", self._stacked),
            k.matmul("forward", self.features, self.features, self.width, self.batch),
            k.pointwise("map", self.batch * self.pairs, 1, 1, 16.0 * self.pairs),
            k.pointwise("map", self.batch * self.outputs),
        )

    def backward(self) -> tuple[Kernel, ...]:
        scores = self.batch * self.features * self.features
        return (
            k.embedding("backward", self.batch * self.pairs, 1, scores),
            k.matmul("weight_grad", self.width, self.features, self.features, self.batch),
            k.matmul("input_grad", self.features, self.width, self.features, self.batch),
            k.pointwise("map", self._stacked, 2),
            k.pointwise("map", self.batch * self.width, 2),
        )

    @property
    def _stacked(self) -> int:
        return self.batch * self.features * self.width

    def saved_elements(self) -> float:
        return self._stacked

    def split(self, split: Split) -> Interaction:
        return self

    def host(self) -> tuple[str, ...]:
        return "cat", "batched_matmul", "embedding", "cat"
