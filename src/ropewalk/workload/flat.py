"""Weights of a layer that data ranks share out: what is gathered, scattered, and copied around the collectives."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split


@dataclass(frozen=True)
class FlatCopies(Operator):
    """What PyTorch's FSDP copies on the stream of the kernels, around the collectives of one layer.

    In FSDP2 an all-gather leaves the shards of all ranks one after the other; every weight is copied out of them before
    a pass that was gathered for. Behind the backward pass gradients are copied into the buffer of the reduce-scatter,
    in the numbers in which they are summed. The first FSDP gathers into place; gradients are joined into one tensor,
    cast to the numbers in which they are summed, and divided there. Copies of a rank's own shard are too small to
    count. Other stacks copy nothing; their kernels only run beside the collectives.

    >>> copies = FlatCopies(1000, again=True, reduced_bytes=4.0)
    >>> [kernel.moved_bytes(2) for kernel in (*copies.forward(), *copies.backward())]
    [4000.0, 4000.0, 6000.0]
    >>> first = FlatCopies(1000, again=True, reduced_bytes=4.0, divided=True)
    >>> [kernel.moved_bytes(2) for kernel in (*first.forward(), *first.backward())]
    [4000.0, 6000.0, 8000.0]
    """

    elements: int
    again: bool
    """Weights are gathered again for the backward pass."""
    reduced_bytes: float | None = None
    """Bytes of a gradient in the buffer; as those of a weight unless given."""
    frozen: int = 0
    """Weights besides that are gathered but have no gradients."""
    copied: bool = True
    """Are they copied at all?"""
    ranks: int = 1
    """Ranks that share them out."""
    divided: bool = False
    """As the first FSDP does it: weights are gathered into place, gradients are joined, cast and divided."""

    def forward(self) -> tuple[Kernel, ...]:
        return (k.pointwise("cat", self.elements + self.frozen),) if self.copied and not self.divided else ()

    def backward(self) -> tuple[Kernel, ...]:
        if not self.elements or not self.copied:
            return self.forward() if self.again else ()
        if self.divided:
            return self._divided()
        written = (self.elements, 0.0) if self.reduced_bytes is None else (0.0, self.reduced_bytes * self.elements)
        filled = Kernel("pointwise", "cat", (self.elements, 1, 1), self.elements, self.elements, *written)
        return (*(self.forward() if self.again else ()), filled)

    def _divided(self) -> tuple[Kernel, ...]:
        """Gradients joined, cast where they are summed in other numbers, and divided by some of the ranks."""
        joined = k.pointwise("cat", self.elements)
        if self.reduced_bytes is None:
            return joined, k.pointwise("map", self.elements)
        wide = self.reduced_bytes * self.elements
        dims = (self.elements, 1, 1)
        cast = Kernel("pointwise", "map", dims, self.elements, self.elements, bytes_fixed=wide)
        return joined, cast, Kernel("pointwise", "map", dims, self.elements, bytes_fixed=2 * wide)

    def split(self, split: Split) -> FlatCopies:
        return self

    def host(self) -> tuple[str, ...]:
        return ("cat",) if self.copied else ()

    def beside_bytes(self, element_bytes: float, *, back: bool) -> float:
        """Bytes of the collectives that run beside a pass.

        >>> shared = FlatCopies(1000, again=True, reduced_bytes=4.0)
        >>> shared.beside_bytes(2.0, back=False), shared.beside_bytes(2.0, back=True)
        (2000.0, 6000.0)
        """
        gathered = (self.elements + self.frozen) * element_bytes
        if not back:
            return gathered
        scattered = self.elements * (element_bytes if self.reduced_bytes is None else self.reduced_bytes)
        return scattered + (gathered if self.again else 0.0)
