"""What a strategy must be told about the device: seconds for work, bytes for numbers.

Whoever measures or models a device answers these questions; nothing here or in what follows knows how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from ropewalk.device.numbers import Numbers
from ropewalk.device.work import Work
from ropewalk.workload.operator import Operator


class TrainedPrecision(Protocol):
    """In which numbers the model is trained."""

    @property
    def element_bytes(self) -> float: ...


class Prices(Protocol):
    """Seconds of pieces of work on one GPU."""

    @property
    def precision(self) -> TrainedPrecision: ...

    def forward(self, operators: Sequence[Operator], /) -> float:
        """Seconds of the forward pass of these operators, run one after the other without a stop."""
        ...

    def backward(self, operators: Sequence[Operator], /) -> float:
        """Seconds of their backward pass."""
        ...

    def weight(self, operators: Sequence[Operator], /) -> float:
        """Seconds of the part of their backward pass that makes gradients of weights alone."""
        ...

    def update(self, parameters: int, tensors: int, optimiser: str, /) -> float:
        """Seconds of the optimiser's update."""
        ...


@runtime_checkable
class LaunchPrices(Protocol):
    """Prices that also know the host: how long it takes to launch the same work."""

    def forward_work(self, operators: Sequence[Operator], /) -> Work: ...

    def backward_work(self, operators: Sequence[Operator], /) -> Work: ...

    def weight_work(self, operators: Sequence[Operator], /) -> Work: ...

    def update_work(self, parameters: int, tensors: int, optimiser: str, /) -> Work: ...


@runtime_checkable
class NumberedPrices(Protocol):
    """Prices of a device that says how wide it keeps numbers; otherwise all are as wide as weights."""

    @property
    def numbers(self) -> Numbers: ...


@dataclass(frozen=True)
class Inside:
    """How GPUs of one server exchange what they share."""

    gpus: int
    bytes_s: float
    """Bytes a second that a GPU sends to the others."""
    start_up_s: float
    """Of a collective."""
    adjacent: bool = True
    """Are tensor ranks next to each other?"""
    across_bytes_s: float = 0.0
    """Bytes a second that a GPU's part of the NICs of its server sends to other servers."""
    taken: float = 0.0
    """Part of the multiprocessors that a collective takes from the kernels beside it."""

    def shared_out_bytes_s(self, ranks: int, tensor: int) -> float:
        """Bytes a second that a GPU gathers of weights that so many ranks share out, beside so many tensor ranks.

        >>> Inside(8, 400e9, 0.0, across_bytes_s=50e9).shared_out_bytes_s(32, 4)
        100000000000.0
        """
        together = max(1, self.gpus // tensor)
        return self.bytes_s if ranks <= together else min(self.bytes_s, together * self.across_bytes_s)


@dataclass(frozen=True)
class KeptPrices:
    """Prices that are asked for once: layers that are alike, and the same layer in every micro-batch, cost the same."""

    prices: Prices
    inside: Inside | None = None
    """What work in chunks overlaps with; None: nothing does."""
    _known: dict[tuple[str, tuple[Operator, ...]], Work] = field(default_factory=dict, repr=False, compare=False)
    _updates: dict[tuple[int, int, str], Work] = field(default_factory=dict, repr=False, compare=False)

    @property
    def element_bytes(self) -> float:
        return self.prices.precision.element_bytes

    @cached_property
    def numbers(self) -> Numbers:
        return self.prices.numbers if isinstance(self.prices, NumberedPrices) else Numbers(self.element_bytes)

    @cached_property
    def _launch(self) -> LaunchPrices | None:
        return self.prices if isinstance(self.prices, LaunchPrices) else None

    def forward(self, operators: tuple[Operator, ...]) -> Work:
        launched = self._launch.forward_work if self._launch else None
        return self._price("forward", launched, self.prices.forward, operators)

    def backward(self, operators: tuple[Operator, ...]) -> Work:
        launched = self._launch.backward_work if self._launch else None
        return self._price("backward", launched, self.prices.backward, operators)

    def weight(self, operators: tuple[Operator, ...]) -> Work:
        """The part of the backward pass that makes gradients of weights alone."""
        launched = self._launch.weight_work if self._launch else None
        return self._price("weight", launched, self.prices.weight, operators)

    def update(self, parameters: int, tensors: int, optimiser: str) -> Work:
        key = parameters, tensors, optimiser
        if key not in self._updates:
            alone = self.prices.update
            self._updates[key] = self._launch.update_work(*key) if self._launch else Work(alone(*key))
        return self._updates[key]

    def _price(
        self,
        direction: str,
        launched: Callable[[Sequence[Operator]], Work] | None,
        alone: Callable[[Sequence[Operator]], float],
        operators: tuple[Operator, ...],
    ) -> Work:
        if not operators:
            return Work()
        key = direction, operators
        if key not in self._known:
            self._known[key] = launched(operators) if launched else Work(alone(operators))
        return self._known[key]


@dataclass(frozen=True)
class Pace:
    """Seconds of work on a GPU whose host runs ahead of it.

    The host launches a whole step without waiting, collectives included, so what counts is whether it needs longer for
    all of a rank's step than the GPU does, not for a single layer. By that factor all of the rank's work is stretched.

    Where layers are priced one by one (`factor` is None), so that a search can move each by itself, every stretch takes
    as long as host and GPU need for it, and each layer is updated by itself.
    """

    listed: KeptPrices
    factor: float | None = 1.0

    @property
    def element_bytes(self) -> float:
        return self.listed.element_bytes

    def forward(self, operators: tuple[Operator, ...]) -> float:
        return self._seconds(self.listed.forward(operators))

    def backward(self, operators: tuple[Operator, ...]) -> float:
        return self._seconds(self.listed.backward(operators))

    def backward_input(self, operators: tuple[Operator, ...]) -> float:
        """What of the backward pass others wait for."""
        return max(0.0, self.backward(operators) - self.backward_weight(operators))

    def backward_weight(self, operators: tuple[Operator, ...]) -> float:
        """What of the backward pass may be put off: gradients of weights alone."""
        return self._seconds(self.listed.weight(operators))

    def update(self, parameters: int, tensors: int, optimiser: str) -> float:
        return self._seconds(self.listed.update(parameters, tensors, optimiser))

    def _seconds(self, work: Work) -> float:
        return work.seconds if self.factor is None else self.factor * work.gpu_s


def pace_of(listed: KeptPrices, step: Work) -> Pace:
    """The pace of a rank with this much work in a step."""
    return Pace(listed, step.seconds / step.gpu_s if step.gpu_s > 0 else 1.0)
