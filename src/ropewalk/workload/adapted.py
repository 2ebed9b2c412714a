"""Operators as real models use them: weights that are tied, gradients nobody needs, inputs another operator keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split


def bare(operator: Operator) -> Operator:
    """The operator itself, without what a model adapts of it."""
    return bare(operator.operator) if isinstance(operator, Adapted) else operator


@dataclass(frozen=True)
class Adapted(Operator):
    """`operator`, except for what is said here.

    >>> from ropewalk.workload.table import Embedding
    >>> Adapted(Embedding(64, 1000, 8), weights=0, tensors=0, saved=0.0).parameters()
    0
    """

    operator: Operator
    weights: int
    """Its parameters: fewer than its sizes say where a weight is tied or absent."""
    tensors: int
    """Tensors that hold these parameters."""
    saved: float
    """Elements it keeps for the backward pass: fewer where another operator keeps the same tensor."""
    skips: tuple[int, ...] = ()
    """Kernels of its backward pass, by position, that never run because nothing needs their result."""
    narrowed: bool = False
    """Where products are narrow it keeps a narrow copy of its input, though another operator keeps it wide."""
    frozen: bool = False
    """Its parameters stay as they are."""

    def forward(self) -> tuple[Kernel, ...]:
        return self.operator.forward()

    def backward(self) -> tuple[Kernel, ...]:
        return tuple(kernel for at, kernel in enumerate(self.operator.backward()) if at not in self.skips)

    def weight_kernels(self) -> tuple[int, ...]:
        run = [at for at in range(len(self.operator.backward())) if at not in self.skips]
        apart = set(self.operator.weight_kernels())
        return tuple(now for now, before in enumerate(run) if before in apart)

    def parameters(self) -> int:
        return self.weights

    def frozen_parameters(self) -> int:
        return self.weights if self.frozen else min(self.weights, self.operator.frozen_parameters())

    def parameter_tensors(self) -> int:
        return self.tensors

    def saved_elements(self) -> float:
        return self.saved

    def narrow_elements(self) -> float:
        own = 0.0 if self.frozen else self.operator.narrow_elements()
        return own if self.narrowed else min(own, self.saved)

    def narrow_parameters(self) -> int:
        return self.operator.narrow_parameters()

    def saved_bytes(self) -> float:
        return self.operator.saved_bytes() if self.backward() else 0.0

    def split(self, split: Split) -> Adapted:
        mine = self.operator.split(split)
        whole, kept = self.operator.parameters(), self.operator.saved_elements()
        # A weight that the operator itself does not have is whole on every rank.
        weights = -(-self.weights * mine.parameters() // whole) if whole else self.weights
        saved = self.saved * mine.saved_elements() / kept if kept else self.saved
        return replace(self, operator=mine, weights=weights, saved=saved)

    def padded(self, rows: int) -> Adapted:
        inner, kept = self.operator.padded(rows), self.operator.saved_elements()
        if inner is self.operator:
            return self
        return replace(self, operator=inner, saved=self.saved * inner.saved_elements() / kept if kept else self.saved)

    def summed_in(self, gradient_bytes: float) -> Adapted:
        inner = self.operator.summed_in(gradient_bytes)
        return self if inner is self.operator else replace(self, operator=inner)

    def host(self) -> tuple[str, ...]:
        return self.operator.host()


@dataclass(frozen=True)
class Weights(Operator):
    """Parameters that no product reads: position tables, class tokens, scales, and those that nothing reads."""

    count: int
    tensors: int = 1

    def forward(self) -> tuple[Kernel, ...]:
        return ()

    def backward(self) -> tuple[Kernel, ...]:
        return ()

    def parameters(self) -> int:
        return self.count

    def parameter_tensors(self) -> int:
        return self.tensors

    def split(self, split: Split) -> Weights:
        return self

    def host(self) -> tuple[str, ...]:
        return ()


def adapt(operator: Operator, weights: int, tensors: int, saved: float, skips: tuple[int, ...] = ()) -> Operator:
    """The operator itself where its own figures are right, otherwise the operator with these."""
    own = (operator.parameters(), operator.parameter_tensors(), operator.saved_elements())
    return operator if own == (weights, tensors, saved) and not skips else Adapted(
        operator, weights, tensors, saved, skips
    )  # fmt: skip
