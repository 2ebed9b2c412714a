"""Functions that a framework carries out as several launches, because they are written that way.

A norm or a rotation of keys that a paper states in one line is, in code that is not compiled, a chain of small kernels
that each read and write memory. A `Routine` is that chain as data, recorded from the framework; `Written` is the
routine applied to a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part

ROWWISE = ("row_mean", "column_sum", "softmax", "softmax_backward")


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel over a tensor of rows x width numbers, or over a part of it."""

    form: str = "map"
    reads: float = 1
    writes: float = 1
    share: float = 1.0
    """The part of the tensor's elements that it touches; more than 1 where it touches a larger tensor."""
    wide: bool = False
    """It works in float32 whatever the step's precision."""
    per_row: bool = False
    """It touches one number a row."""
    mask: bool = False
    """It reads or writes a mask too, a byte an element."""
    draws: bool = False
    """It makes a random number for every element by itself, as torch.compile's kernels do."""

    def kernel(self, rows: int, width: int) -> Kernel:
        elements = rows if self.per_row else max(1, round(rows * width * self.share))
        if self.form == "cast":
            return wide.cast(elements)
        if self.form in ROWWISE:
            make = wide.rowwise if self.wide else k.rowwise
            return make(self.form, rows, max(1, round(width * self.share)), self.reads, self.writes)
        if self.wide:
            return wide.pointwise(self.form, elements, self.reads, self.writes)
        made = k.pointwise(self.form, elements, self.reads, self.writes, elements if self.mask else 0.0)
        return replace(made, draws=elements) if self.draws else made


@dataclass(frozen=True, slots=True)
class Routine:
    """What a piece of framework code launches, in both passes."""

    name: str
    forward: tuple[Launch, ...]
    backward: tuple[Launch, ...]
    calls: tuple[str, ...]
    """Calls of the framework in the forward pass, by the names under which their host time is measured."""
    weights: int = 0
    """Parameters as long as a row that belong to it, such as the scale of a norm."""
    saved: float = 0.0
    """Tensors kept for the backward pass, in the step's precision."""
    saved_wide: float = 0.0
    """Tensors kept in float32."""


@dataclass(frozen=True)
class Written(Operator):
    """A routine applied to `rows` rows of `width` numbers."""

    routine: Routine
    rows: int
    width: int
    role: Role = Role.OUTSIDE
    """INSIDE splits the rows' width, as heads and hidden neurons are; OUTSIDE splits the rows."""

    def forward(self) -> tuple[Kernel, ...]:
        return tuple(launch.kernel(self.rows, self.width) for launch in self.routine.forward)

    def backward(self) -> tuple[Kernel, ...]:
        return tuple(launch.kernel(self.rows, self.width) for launch in self.routine.backward)

    def parameters(self) -> int:
        return self.routine.weights * self.width

    def parameter_tensors(self) -> int:
        return self.routine.weights

    def saved_elements(self) -> float:
        return self.routine.saved * self.rows * self.width

    def saved_bytes(self) -> float:
        masks = sum(launch.mask for launch in self.routine.forward)
        return (wide.WIDE * self.routine.saved_wide + masks) * self.rows * self.width

    def split(self, split: Split) -> Written:
        whole = replace(self, rows=part(self.rows, split.context))
        if self.role is Role.INSIDE:
            return replace(whole, width=part(self.width, split.tensor))
        return replace(whole, rows=part(whole.rows, split.ways(self.role)))

    def host(self) -> tuple[str, ...]:
        return self.routine.calls
