"""A workload: layers, what they pass to each other, and how often they run in a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.operator import Operator, Split


@dataclass(frozen=True)
class Layer:
    """Operators that stay together: the smallest piece that a strategy places."""

    name: str
    operators: tuple[Operator, ...]
    output_elements: int
    """Elements handed to each layer that reads this one, for one micro-batch."""
    inputs: tuple[int, ...] = ()
    """Numbers of the earlier layers it reads; none for a layer that reads data."""
    kind: str = "layer"
    """Layers of one kind and equal operators cost the same: `embedding`, `block`, `head`, …"""

    def parameters(self) -> int:
        return sum(operator.parameters() for operator in self.operators)

    def trained_parameters(self) -> int:
        """Those that have gradients."""
        return self.parameters() - sum(operator.frozen_parameters() for operator in self.operators)

    def parameter_tensors(self) -> int:
        return sum(operator.parameter_tensors() for operator in self.operators)

    def forward_flops(self) -> float:
        return sum(kernel.flops for operator in self.operators for kernel in operator.forward())

    def backward_flops(self) -> float:
        return sum(kernel.flops for operator in self.operators for kernel in operator.backward())

    def read_bytes(self, element_bytes: float) -> float:
        """Bytes that the forward pass reads from memory at least."""
        kernels = [kernel for operator in self.operators for kernel in operator.forward()]
        return sum(kernel.elements_read for kernel in kernels) * element_bytes

    def written_bytes(self, element_bytes: float) -> float:
        """Bytes that the forward pass writes to memory at least."""
        kernels = [kernel for operator in self.operators for kernel in operator.forward()]
        return sum(kernel.elements_written for kernel in kernels) * element_bytes

    def saved_bytes(self, element_bytes: float) -> float:
        """Bytes kept from the forward to the backward pass of one micro-batch."""
        return sum(op.saved_elements() * element_bytes + op.saved_bytes() for op in self.operators)

    def meets(self, meeting: Meeting) -> bool:
        """Do ranks that share this layer meet for this reason?"""
        return any(isinstance(op, Exchange) and op.meeting is meeting for op in self.operators)

    def split(self, split: Split) -> Layer:
        """What one rank does of this layer."""
        return Layer(
            self.name, tuple(op.split(split) for op in self.operators), self.output_elements, self.inputs, self.kind
        )


@dataclass(frozen=True)
class Workload:
    """A model and one micro-batch of it.

    `at_batch` makes the same model for another micro-batch: builders of the zoo and importers say how.
    """

    name: str
    layers: tuple[Layer, ...]
    batch: int
    """Samples in the micro-batch for which the layers are sized."""
    sequence: int = 0
    """Tokens in a sample; 0 where samples are not sequences."""
    source: str = "zoo"
    resize: Callable[[int], Workload] | None = field(default=None, compare=False, repr=False)
    stack: str = ""
    """The software whose kernels the layers are made of, where that can be chosen."""

    def __post_init__(self) -> None:
        findings = Findings(WorkloadError, f"workload {self.name}")
        if not self.layers:
            findings.add("it has no layers: give at least one")
        for number, layer in enumerate(self.layers):
            if any(not 0 <= source < number for source in layer.inputs):
                findings.add(f"layer {layer.name!r} reads a later layer or itself: list layers after those they read")
        findings.raise_if_any()

    def parameters(self) -> int:
        return sum(layer.parameters() for layer in self.layers)

    def trained_parameters(self) -> int:
        """Those that have gradients: all, unless a part of the model is frozen."""
        return sum(layer.trained_parameters() for layer in self.layers)

    def parameter_tensors(self) -> int:
        return sum(layer.parameter_tensors() for layer in self.layers)

    @property
    def tokens(self) -> int:
        """Tokens, or samples where samples are not sequences, in the micro-batch."""
        return self.batch * max(self.sequence, 1)

    def forward_flops(self) -> float:
        return sum(layer.forward_flops() for layer in self.layers)

    def backward_flops(self) -> float:
        return sum(layer.backward_flops() for layer in self.layers)

    @cached_property
    def flops(self) -> float:
        """Arithmetic of both passes of the micro-batch."""
        return self.forward_flops() + self.backward_flops()

    def at_batch(self, batch: int) -> Workload:
        """The same model for micro-batches of another size."""
        if batch == self.batch:
            return self
        if batch < 1:
            raise WorkloadError(f"workload {self.name}: a micro-batch of {batch} samples: give 1 or more")
        if self.resize is None:
            raise WorkloadError(
                f"workload {self.name} ({self.source}) is fixed at micro-batches of {self.batch}: import it for {batch}"
            )
        return self.resize(batch)

    @property
    def is_chain(self) -> bool:
        """Does every layer read only the one before it?"""
        return all(layer.inputs == ((number - 1,) if number else ()) for number, layer in enumerate(self.layers))


def chain(name: str, layers: list[Layer], **rest: object) -> Workload:
    """A workload whose layers follow each other."""
    linked = tuple(
        Layer(layer.name, layer.operators, layer.output_elements, (number - 1,) if number else (), layer.kind)
        for number, layer in enumerate(layers)
    )
    return Workload(name, linked, **rest)  # type: ignore[arg-type]
