"""State space layers: a state for every head that goes along the sequence, computed chunk by chunk.

Dao and Gu, Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality
(2024): inside of a chunk the scan is attention without a softmax, between chunks a recurrence over their states.
Kernels are those of the authors' package, products as batched products and the rest by the bytes it moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Split, part


@dataclass(frozen=True)
class Scan(Operator):
    """The scan of a Mamba-2 layer over `batch` sequences of `length` tokens.

    >>> Scan(1, 512, 8, 64, 128, 1).parameters()
    24
    """

    batch: int
    length: int
    heads: int
    size: int
    """Numbers of a token in a head."""
    state: int
    """Numbers of the state for each of these."""
    groups: int
    """Groups of heads, each with what writes into states and reads them in common."""
    chunk: int = 128
    """Tokens of a chunk."""

    @property
    def chunks(self) -> int:
        return self.batch * -(-self.length // self.chunk)

    def _products(self) -> tuple[tuple[int, int, int, int], ...]:
        """Count, rows, columns and inner of each product of the forward pass.

        What chunks write into states; how tokens of a chunk see each other; what they take of each other, and what of
        the state before the chunk.
        """
        heads, tokens = self.chunks * self.heads, min(self.chunk, self.length)
        return (
            (heads, self.size, self.state, tokens),
            (self.chunks * self.groups, tokens, tokens, self.state),
            (heads, tokens, self.size, tokens),
            (heads, tokens, self.size, self.state),
        )

    def _states(self) -> Kernel:
        """States in float32, each made of the one before and what its chunk writes."""
        return wide.pointwise("map", self.chunks * self.heads * self.size * self.state)

    def forward(self) -> tuple[Kernel, ...]:
        decays = wide.pointwise("map", self.batch * self.length * self.heads)
        written, seen, *taken = (_product("forward", *sizes) for sizes in self._products())
        return decays, written, self._states(), seen, *taken

    def backward(self) -> tuple[Kernel, ...]:
        """States and how tokens see each other are computed again, not kept."""
        both: list[Kernel] = []
        for count, rows, columns, inner in reversed(self._products()):
            both.append(_product("input_grad", count, rows, inner, columns))
            both.append(_product("weight_grad", count, inner, columns, rows))
        steps = wide.rowwise("column_sum", self.batch * self.length, self.heads, 3, 0)
        return (*self.forward()[:4], *both, self._states(), steps)

    def parameters(self) -> int:
        """Of every head: how fast it forgets, the bias of its steps, and what of a token goes past the scan."""
        return 3 * self.heads

    def parameter_tensors(self) -> int:
        return 3

    def saved_elements(self) -> float:
        """All that is made of a token: the gate, what is scanned, what writes and reads, the step."""
        each = 2 * self.heads * self.size + 2 * self.groups * self.state + self.heads
        return self.batch * self.length * each

    def split(self, split: Split) -> Scan:
        return replace(self, heads=part(self.heads, split.tensor), groups=part(self.groups, split.tensor))

    def host(self) -> tuple[str, ...]:
        return ("scale", *("batched_matmul",) * 4, "add")


def _product(form: str, count: int, rows: int, columns: int, inner: int) -> Kernel:
    return k.matmul(form, rows, columns, inner, count, exact=True)
