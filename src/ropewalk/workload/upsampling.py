"""Convolutions run backwards, which make images larger."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload import kernel as k
from ropewalk.workload.image import Convolution
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split


@dataclass(frozen=True)
class TransposedConvolution(Operator):
    """The convolution `mirror` from its result back to its image: forward it is the gradient of an input.

    >>> TransposedConvolution(Convolution(1, 8, 32, 32, 16, (2, 2), (2, 2))).result_elements
    8192
    """

    mirror: Convolution
    """A convolution without bias whose image is what this operator makes and whose result is what it reads."""
    bias: bool = False
    first: bool = False
    """It reads data, not activations: no gradient of its input is computed."""

    def forward(self) -> tuple[Kernel, ...]:
        into_image = self.mirror.backward()[0]
        return (into_image, *((k.pointwise("map", self.result_elements, 1, 1),) if self.bias else ()))

    def backward(self) -> tuple[Kernel, ...]:
        into_input, into_weight = self.mirror.forward()[0], self.mirror.backward()[1]
        summed = k.rowwise("column_sum", self.result_elements // self.mirror.channels, self.mirror.channels, 1, 0)
        return (*(() if self.first else (into_input,)), into_weight, *((summed,) if self.bias else ()))

    def weight_kernels(self) -> range:
        return range(0 if self.first else 1, len(self.backward()))

    @property
    def result_elements(self) -> int:
        return self.mirror.batch * self.mirror.channels * self.mirror.height * self.mirror.width

    def parameters(self) -> int:
        return self.mirror.parameters() + (self.mirror.channels if self.bias else 0)

    def parameter_tensors(self) -> int:
        return 1 + int(self.bias)

    def saved_elements(self) -> float:
        return self.mirror.result_elements

    def split(self, split: Split) -> TransposedConvolution:
        return self

    def host(self) -> tuple[str, ...]:
        return ("convolution",)
