"""Recurrent layers, which go through a sequence step by step."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split


@dataclass(frozen=True)
class Lstm(Operator):
    """One direction of one LSTM layer over `steps` tokens of `batch` samples.

    >>> Lstm(50, 64, 1024, 1024).parameters()
    8396800
    """

    steps: int
    batch: int
    inputs: int
    hidden: int

    def forward(self) -> tuple[Kernel, ...]:
        return (k.recurrent("forward", self.steps, self.batch, self.inputs, self.hidden),)

    def backward(self) -> tuple[Kernel, ...]:
        return (k.recurrent("backward", self.steps, self.batch, self.inputs, self.hidden),)

    def parameters(self) -> int:
        return 4 * self.hidden * (self.inputs + self.hidden + 2)

    def parameter_tensors(self) -> int:
        return 4

    def saved_elements(self) -> float:
        """The input, four gates, the cell and the output of every step."""
        return self.steps * self.batch * (self.inputs + 6 * self.hidden)

    def split(self, split: Split) -> Lstm:
        return self

    def host(self) -> tuple[str, ...]:
        return ("convolution",)
