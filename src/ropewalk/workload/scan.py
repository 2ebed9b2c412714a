"""State space layers: a state for every head that goes along the sequence, computed chunk by chunk.

Dao and Gu, Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality
(2024): inside of a chunk the scan is attention without a softmax, between chunks a recurrence over their states.
Kernels are those of the authors' package (`mamba_ssm`, Triton); each pass is priced as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
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

    def forward(self) -> tuple[Kernel, ...]:
        return (self._kernel("forward"),)

    def backward(self) -> tuple[Kernel, ...]:
        return (self._kernel("backward"),)

    def _kernel(self, form: str) -> Kernel:
        return k.scan(form, self.batch, self.length, self.heads, self.size, self.state, self.groups, self.chunk)

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
