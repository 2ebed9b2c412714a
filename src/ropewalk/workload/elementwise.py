"""Operators that touch every element a few times: activations, dropout, normalisation, softmax, the loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part


@dataclass(frozen=True)
class Pointwise(Operator):
    """A function of every element, such as an activation, a sum of two branches or a change of layout.

    `passes` launches in the forward pass each read `reads` tensors and write one; the backward pass launches
    `backward_passes`, which read `backward_reads`.
    """

    elements: int
    reads: int = 1
    form: str = "map"
    backward_form: str = "map"
    backward_reads: int = 2
    passes: int = 1
    backward_passes: int = 1
    saved: float = 1.0
    """Tensors of `elements` elements kept for the backward pass."""
    role: Role = Role.OUTSIDE
    call: str = "relu"
    """The call whose host time one pass takes."""
    widened: bool = False
    """It works in float32 whatever the step's precision, as careful code does in norms and losses."""

    def forward(self) -> tuple[Kernel, ...]:
        return (self._kernel(self.form, self.reads),) * self.passes

    def backward(self) -> tuple[Kernel, ...]:
        return (self._kernel(self.backward_form, self.backward_reads),) * self.backward_passes

    def _kernel(self, form: str, reads: int) -> Kernel:
        if self.widened:
            return Kernel(
                "pointwise", form, (self.elements, reads, 1), self.elements, 0, 0, 4.0 * self.elements * (reads + 1)
            )
        return k.pointwise(form, self.elements, reads, 1)

    def saved_elements(self) -> float:
        return self.saved * self.elements

    def split(self, split: Split) -> Pointwise:
        return replace(self, elements=part(self.elements, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return (self.call,) * self.passes


@dataclass(frozen=True)
class Dropout(Operator):
    """Elements set to zero by chance; the mask is kept, a byte for each."""

    elements: int
    role: Role = Role.OUTSIDE

    def forward(self) -> tuple[Kernel, ...]:
        return (k.pointwise("dropout", self.elements, 1, 1, bytes_fixed=self.elements),)

    def backward(self) -> tuple[Kernel, ...]:
        return (k.pointwise("map", self.elements, 1, 1, bytes_fixed=self.elements),)

    def saved_bytes(self) -> float:
        return self.elements

    def split(self, split: Split) -> Dropout:
        return replace(self, elements=part(self.elements, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return ("dropout",)


@dataclass(frozen=True)
class Normalise(Operator):
    """Every row brought to mean and variance (`layer_norm`) or to length (`rms_norm`), then scaled."""

    rows: int
    width: int
    form: str = "layer_norm"
    role: Role = Role.OUTSIDE

    def forward(self) -> tuple[Kernel, ...]:
        return (k.rowwise(self.form, self.rows, self.width, 1, 1),)

    def backward(self) -> tuple[Kernel, ...]:
        return (k.rowwise(f"{self.form}_backward", self.rows, self.width, 2, 1),)

    def parameters(self) -> int:
        return self.width * self.parameter_tensors()

    def parameter_tensors(self) -> int:
        return 2 if self.form == "layer_norm" else 1

    def saved_elements(self) -> float:
        return self.rows * self.width

    def split(self, split: Split) -> Normalise:
        return replace(self, rows=part(self.rows, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return (self.form,)


@dataclass(frozen=True)
class Softmax(Operator):
    """Rows turned into probabilities; `form` is `softmax` or `log_softmax`."""

    rows: int
    width: int
    form: str = "softmax"
    role: Role = Role.INSIDE

    def forward(self) -> tuple[Kernel, ...]:
        return (k.rowwise(self.form, self.rows, self.width, 1, 1),)

    def backward(self) -> tuple[Kernel, ...]:
        return (k.rowwise(f"{self.form}_backward", self.rows, self.width, 2, 1),)

    def saved_elements(self) -> float:
        return self.rows * self.width

    def split(self, split: Split) -> Softmax:
        return replace(self, rows=part(self.rows, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return ("softmax",)
