"""Losses: what turns the last layer's output into one number, and the first gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part


@dataclass(frozen=True)
class CrossEntropy(Operator):
    """Log-softmax over `width` classes and the negative log-likelihood of the right one, for `rows` predictions."""

    rows: int
    width: int
    widened: bool = False
    """Logits are made float32 first, as causal language models do."""
    shifted: bool = False
    """Labels are moved by one place first, as causal language models do."""
    stepwise: bool = False
    """Widened logits are turned into probabilities in place, one pass over them for each step, as in Megatron-LM
    without `--cross-entropy-loss-fusion`."""
    role: Role = Role.WHOLE
    """INSIDE: the classes are split over the ranks."""

    def forward(self) -> tuple[Kernel, ...]:
        labels = wide.integers(self.rows)
        if self.stepwise:
            along, in_place = wide.rowwise("row_mean", self.rows, self.width, 1, 0), wide.pointwise("map", self._logits)
            largest, less_it, exponentials, summed, divided = along, in_place, in_place, along, in_place
            return wide.cast(self._logits), largest, less_it, labels, exponentials, summed, divided
        return (
            *((wide.cast(self._logits),) if self.widened else ()),
            *((labels, labels) if self.shifted else ()),
            self._softmax("log_softmax", 1),
            labels,
        )

    def backward(self) -> tuple[Kernel, ...]:
        if self.stepwise:
            return wide.integers(self.rows), wide.pointwise("map", self._logits), wide.cast(self._logits)
        zeros = wide.pointwise if self.widened else k.pointwise
        return (
            k.pointwise("map", 1, 0, 1),
            zeros("map", self._logits, 0, 1),
            wide.integers(self.rows),
            self._softmax("log_softmax_backward", 2),
            *((wide.cast(self._logits),) if self.widened else ()),
        )

    def _softmax(self, form: str, reads: int) -> Kernel:
        make = wide.rowwise if self.widened else k.rowwise
        return make(form, self.rows, self.width, reads, 1)

    @property
    def _logits(self) -> int:
        return self.rows * self.width

    def saved_elements(self) -> float:
        return 0.0 if self.widened or self.stepwise else self._logits

    def saved_bytes(self) -> float:
        return (wide.WIDE * self._logits if self.widened or self.stepwise else 0.0) + 8.0 * self.rows

    def split(self, split: Split) -> CrossEntropy:
        ways = split.tensor if self.role is Role.INSIDE else 1
        return replace(self, rows=part(self.rows, split.context), width=part(self.width, ways))

    def host(self) -> tuple[str, ...]:
        if self.stepwise:
            return "cast", "mean", "add", "embedding", "scale", "mean", "scale"
        moved = ("cat", "copy") if self.shifted else ()
        return (*(("cast",) if self.widened else ()), *moved, "softmax", "embedding")


@dataclass(frozen=True)
class BinaryCrossEntropy(Operator):
    """The loss of a click that came or did not come: one probability a sample, a sigmoid before it."""

    rows: int

    def forward(self) -> tuple[Kernel, ...]:
        return k.pointwise("map", self.rows), k.rowwise("row_mean", 1, self.rows, 2, 0)

    def backward(self) -> tuple[Kernel, ...]:
        return k.pointwise("map", 1, 0, 1), k.pointwise("map", self.rows, 2), k.pointwise("map", self.rows, 2)

    def saved_elements(self) -> float:
        return 2.0 * self.rows

    def split(self, split: Split) -> BinaryCrossEntropy:
        return self

    def host(self) -> tuple[str, ...]:
        return "relu", "mean"
