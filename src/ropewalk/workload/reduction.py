"""Many numbers become few, or few are read by many: sums, means, extremes, and small tensors spread over large ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part


@dataclass(frozen=True)
class Reduction(Operator):
    """Each of `rows` rows of `width` numbers becomes one number; the gradient is spread back over the row."""

    rows: int
    width: int
    role: Role = Role.WHOLE
    saved: float = 0.0
    """Tensors of rows x width kept for the backward pass: none for sums and means, one for extremes and norms."""
    widened: bool = False
    """It works in float32 whatever the step's precision."""

    def forward(self) -> tuple[Kernel, ...]:
        make = wide.rowwise if self.widened else k.rowwise
        return (make("row_mean", self.rows, self.width, 1, 0),)

    def backward(self) -> tuple[Kernel, ...]:
        make = wide.pointwise if self.widened else k.pointwise
        return (make("map", self.rows * self.width, 1 if self.saved else 0, 1),)

    def saved_elements(self) -> float:
        return self.saved * self.rows * self.width

    def split(self, split: Split) -> Reduction:
        return replace(self, rows=part(self.rows, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return ("mean",)


@dataclass(frozen=True)
class Broadcast(Operator):
    """Few numbers are read by many: free forward, a sum over those who read them in the backward pass.

    `form` says which: a row of `width` numbers read by every one of `rows` rows (`column_sum`), or a number for each
    row read by all of its `width` elements (`row_mean`).
    """

    rows: int
    width: int
    form: str = "column_sum"
    role: Role = Role.WHOLE
    widened: bool = False
    """It works in float32 whatever the step's precision."""

    def forward(self) -> tuple[Kernel, ...]:
        return ()

    def backward(self) -> tuple[Kernel, ...]:
        make = wide.rowwise if self.widened else k.rowwise
        return (make(self.form, self.rows, self.width, 1, 0),)

    def split(self, split: Split) -> Broadcast:
        return replace(self, rows=part(self.rows, split.ways(self.role) * split.context))

    def host(self) -> tuple[str, ...]:
        return ()
