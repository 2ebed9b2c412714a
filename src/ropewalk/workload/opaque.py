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

    def forward(self) -> tuple[Kernel, ...]:
        return (_measured(self.forward_s),)

    def backward(self) -> tuple[Kernel, ...]:
        return (_measured(self.backward_s),)

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


def _measured(seconds: float) -> Kernel:
    """A kernel that takes this long on whatever device; its only size is its time in picoseconds."""
    return Kernel("measured", "", (round(seconds * 1e12),))
