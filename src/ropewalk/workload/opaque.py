"""Work of which only the time is known, from a profile or a trace of another tool."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split, part


@dataclass(frozen=True)
class Measured(Operator):
    """A piece of a model with measured times for one micro-batch, and sizes as the profile gives them."""

    forward_s: float
    backward_s: float
    weights: int = 0
    saved: float = 0.0
    """Bytes kept for the backward pass."""
    weight_share: float = 0.5
    """The part of the backward pass that makes gradients of weights alone, where there are weights."""

    def forward(self) -> tuple[Kernel, ...]:
        return (_kernel(_picoseconds(self.forward_s)),)

    def backward(self) -> tuple[Kernel, ...]:
        if not self.weights or not self.weight_share:
            return (_kernel(_picoseconds(self.backward_s)),)
        whole = _picoseconds(self.backward_s)
        late = round(whole * self.weight_share)
        return _kernel(whole - late), _kernel(late)

    def weight_kernels(self) -> range:
        return range(1, len(self.backward()))

    def parameters(self) -> int:
        return self.weights

    def parameter_tensors(self) -> int:
        return int(self.weights > 0)

    def saved_bytes(self) -> float:
        return self.saved

    def split(self, split: Split) -> Measured:
        ways = split.tensor
        return replace(
            self, forward_s=self.forward_s / ways, backward_s=self.backward_s / ways,
            weights=part(self.weights, ways), saved=self.saved / ways,
        )  # fmt: skip

    def host(self) -> tuple[str, ...]:
        return ()


def _picoseconds(seconds: float) -> int:
    return round(seconds * 1e12)


def _kernel(picoseconds: int) -> Kernel:
    """A kernel that takes this long on whatever device; its only size is its time."""
    return Kernel("measured", "", (picoseconds,))
