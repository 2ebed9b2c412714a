"""Operators: what layers are made of, with sizes instead of tensors.

An operator says which kernels its forward and its backward pass launch, how many parameters it has, what it must keep
for the backward pass, and what becomes of it when a layer is split over several GPUs. It holds no data and no time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

from ropewalk.workload.kernel import Kernel


class Role(Enum):
    """What tensor parallelism does to an operator (the words of Shoeybi et al., Megatron-LM, 2019)."""

    WHOLE = "whole"
    """Every rank does all of it."""
    OUTSIDE = "outside"
    """Between two split regions: whole on every rank, or split along the sequence under sequence parallelism."""
    INSIDE = "inside"
    """In a split region: every rank does its part."""
    HEADS = "heads"
    """In a split region, a row for every head: every rank does the rows of its own."""
    COLUMNS = "columns"
    """A linear layer whose outputs are split; its input is whole."""
    ROWS = "rows"
    """A linear layer whose inputs are split; its output is a sum over ranks."""
    ROUTED = "routed"
    """Around experts: whole on every rank, or split along the sequence where experts are folded."""


GATHER, RING, ULYSSES = "gather", "ring", "ulysses"
"""How ranks that share a sequence meet in attention: `strategy.context` says what they are."""


@dataclass(frozen=True)
class Split:
    """Over how many ranks a layer is split, and in which ways."""

    tensor: int = 1
    sequence: bool = False
    """Sequence parallelism: what lies outside the split regions is split along the sequence."""
    expert: int = 1
    context: int = 1
    """Context parallelism: the sequence itself is cut, attention included."""
    exchange: str = GATHER
    """How the ranks that share a sequence meet in attention."""
    folded: bool = False
    """Experts are spread, whole, over tensor and context ranks too: each of these ranks has tokens of its own."""
    meanwhile: bool = False
    """Shared experts are computed while tokens travel to the others and back."""

    def ways(self, role: Role) -> int:
        """Into how many parts work with this role falls."""
        whole = {Role.WHOLE: True, Role.OUTSIDE: not self.sequence, Role.ROUTED: not self.folded}
        if whole.get(role, False):
            return 1
        return self.tensor


@dataclass(frozen=True)
class Operator(ABC):
    """The contract of every operator. Sizes are those of one micro-batch on one rank."""

    captured: bool = field(default=False, kw_only=True)
    """Its kernels are part of a CUDA graph: the host launches all of them at once, and calls nothing for them."""

    @abstractmethod
    def forward(self) -> tuple[Kernel, ...]:
        """Kernels of the forward pass, in order."""

    @abstractmethod
    def backward(self) -> tuple[Kernel, ...]:
        """Kernels of the backward pass, in order."""

    @abstractmethod
    def split(self, split: Split) -> Operator:
        """What one rank does of it."""

    def padded(self, rows: int) -> Operator:
        """The same where narrow products want a multiple of `rows` rows of each expert: others stay as they are."""
        return self

    def summed_in(self, gradient_bytes: float) -> Operator:
        """The same where gradients of weights are added up in numbers of so many bytes."""
        return self

    def weight_kernels(self) -> range | tuple[int, ...]:
        """Positions in `backward()` of kernels that make gradients of weights alone, which may be put off.

        None where one launch makes the gradients of weights and of inputs together, as those of norms do.
        """
        return ()

    def weight_backward(self) -> tuple[Kernel, ...]:
        """Kernels of the backward pass for gradients of weights alone, in order.

        >>> from ropewalk.workload.dense import Linear
        >>> [kernel.form for kernel in Linear(8, 4, 6).weight_backward()]
        ['weight_grad', 'column_sum']
        """
        kernels = self.backward()
        return tuple(kernels[at] for at in self.weight_kernels())

    def parameters(self) -> int:
        return 0

    def frozen_parameters(self) -> int:
        """Of its parameters, those that stay as they are: without gradients, without an optimiser's state."""
        return 0

    def parameter_tensors(self) -> int:
        """Tensors that hold the parameters that are trained; an optimiser handles them one by one."""
        return 0

    def saved_elements(self) -> float:
        """Elements kept from the forward pass for the backward pass, counted in elements of the step's precision."""
        return 0.0

    def narrow_elements(self) -> float:
        """Elements kept for products alone, in their numbers, where these are narrower than the step's precision.

        They are among the saved elements, unless another operator keeps the same tensor for other ends.
        """
        return 0.0

    def narrow_parameters(self) -> int:
        """Parameters of which narrow copies are kept where products are narrower than the step's precision."""
        return 0

    def saved_bytes(self) -> float:
        """Bytes kept whatever the precision: masks and indices."""
        return 0.0

    @abstractmethod
    def host(self) -> tuple[str, ...]:
        """The calls of the framework it takes, by the names under which their host time is measured."""


def part(size: int, ways: int) -> int:
    """The share of one rank, the largest where it does not come out even.

    >>> part(10, 4)
    3
    """
    return -(-size // ways)
