"""Operators on images: convolutions, normalisation of channels, pools."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part


@dataclass(frozen=True)
class Convolution(Operator):
    """A 2-D convolution of `batch` images."""

    batch: int
    channels: int
    height: int
    width: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    groups: int = 1
    bias: bool = False
    first: bool = False
    """It reads data, not activations: no gradient of its input is computed."""
    role: Role = Role.WHOLE

    def forward(self) -> tuple[Kernel, ...]:
        added = (k.pointwise("broadcast", self.result_elements, 2, 1),) if self.bias else ()
        return (self._kernel("forward"), *added)

    def backward(self) -> tuple[Kernel, ...]:
        forms = ("weight_grad",) if self.first else ("input_grad", "weight_grad")
        summed = (
            (k.rowwise("column_sum", self.result_elements // self.outputs, self.outputs, 1, 0),) if self.bias else ()
        )
        return (*map(self._kernel, forms), *summed)

    def weight_kernels(self) -> range:
        return range(0 if self.first else 1, len(self.backward()))

    def _kernel(self, form: str) -> Kernel:
        return k.convolution(
            form, self.batch, self.channels, self.height, self.width, self.outputs, self.kernel, self.stride,
            self.padding, self.groups,
        )  # fmt: skip

    @property
    def result_side(self) -> tuple[int, int]:
        """Height and width of the result."""
        return (
            k.convolved(self.height, self.kernel[0], self.stride[0], self.padding[0]),
            k.convolved(self.width, self.kernel[1], self.stride[1], self.padding[1]),
        )

    @property
    def result_elements(self) -> int:
        high, wide = self.result_side
        return self.batch * self.outputs * high * wide

    def parameters(self) -> int:
        weight = self.outputs * (self.channels // self.groups) * self.kernel[0] * self.kernel[1]
        return weight + (self.outputs if self.bias else 0)

    def parameter_tensors(self) -> int:
        return 1 + int(self.bias)

    def saved_elements(self) -> float:
        return self.batch * self.channels * self.height * self.width

    def split(self, split: Split) -> Convolution:
        if self.role is Role.COLUMNS:
            return replace(self, outputs=part(self.outputs, split.tensor))
        if self.role is Role.ROWS:
            return replace(self, channels=part(self.channels, split.tensor))
        return self

    def host(self) -> tuple[str, ...]:
        if self.bias:
            return ("convolution_with_bias",)
        return ("pointwise_convolution" if self.kernel == (1, 1) else "convolution",)


@dataclass(frozen=True)
class BatchNorm(Operator):
    """Every channel brought to mean 0 and variance 1 over the batch, then scaled and shifted."""

    batch: int
    channels: int
    positions: int

    def forward(self) -> tuple[Kernel, ...]:
        counter = wide.integers(1)  # of batches seen so far
        return counter, k.batch_norm("forward", self.batch, self.channels, self.positions)

    def backward(self) -> tuple[Kernel, ...]:
        return (k.batch_norm("backward", self.batch, self.channels, self.positions),)

    def parameters(self) -> int:
        return 2 * self.channels

    def parameter_tensors(self) -> int:
        return 2

    def saved_elements(self) -> float:
        return self.batch * self.channels * self.positions

    def split(self, split: Split) -> BatchNorm:
        return self

    def host(self) -> tuple[str, ...]:
        return ("batch_norm",)


@dataclass(frozen=True)
class Pool(Operator):
    """The largest element (`max`) or the mean (`average`) of a window that slides over the image."""

    form: str
    batch: int
    channels: int
    height: int
    width: int
    kernel: int
    stride: int
    padding: int = 0

    def forward(self) -> tuple[Kernel, ...]:
        return (self._kernel(self.form),)

    def backward(self) -> tuple[Kernel, ...]:
        return (self._kernel(f"{self.form}_backward"),)

    def _kernel(self, form: str) -> Kernel:
        return k.pool(form, self.batch, self.channels, self.height, self.width, self.kernel, self.stride, self.padding)

    def saved_elements(self) -> float:
        return self.batch * self.channels * self.height * self.width if self.form == "max" else 0.0

    def saved_bytes(self) -> float:
        """Where each largest element lay."""
        return self._kernel(self.form).bytes_fixed

    def split(self, split: Split) -> Pool:
        return self

    def host(self) -> tuple[str, ...]:
        return ("max_pool" if self.form == "max" else "average_pool",)
