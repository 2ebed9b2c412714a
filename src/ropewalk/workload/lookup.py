"""One embedding table whose gradients touch only the rows that were looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split, part


@dataclass(frozen=True)
class SparseTable(Operator):
    """Each of `bags` samples adds up `lookups` rows of a table that is updated row by row.

    A table of ten million rows is never swept in a step: its backward pass adds gradients to the rows that were
    looked up, and that is its update too. So it moves the bytes of its lookups back again, whatever its size.

    >>> SparseTable(512, 100, 10_000_000, 128).parameters()
    1280000000
    """

    bags: int
    lookups: int
    vocabulary: int
    width: int

    def forward(self) -> tuple[Kernel, ...]:
        return (k.embedding_bag("forward", self.bags, self.lookups, self.width, self.vocabulary),)

    def backward(self) -> tuple[Kernel, ...]:
        # Rows are read, added to and written: what the forward pass reads goes both ways.
        return self.forward() * 2

    def weight_kernels(self) -> range:
        return range(len(self.backward()))

    def parameters(self) -> int:
        return self.vocabulary * self.width

    def parameter_tensors(self) -> int:
        return 1

    def saved_bytes(self) -> float:
        return 8.0 * self.bags * self.lookups

    def split(self, split: Split) -> SparseTable:
        """Tensor parallelism gives every rank some columns."""
        return replace(self, width=part(self.width, split.tensor), bags=part(self.bags, split.context))

    def host(self) -> tuple[str, ...]:
        return ("embedding_bag",)
