"""What Megatron-Core's own Python takes of the host between its calls, part by part.

Measured on one H200 with layers too small to keep it busy: Megatron-Core and Transformer Engine of August 2026, their
Python as it is, with PyTorch in place of Transformer Engine's compiled extension. A layer of Qwen3 30B-A3B with eight
experts takes the host 385 times as long as the forward call of a `torch.nn.Linear` of the same host (dense: 133), which
is 13.5 µs on the Xeon 8480C of a DGX H100 (TransformerEngine, issue 2053). What of that the calls of `Operator.host`
do not account for stands here, for that host: its calls to Transformer Engine take as long as PyTorch's own on the host
of the shipped measurements, which is 2.2 times as slow where Transformer Engine's calls are 2.3 to 2.9 times as long.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """Tens of microseconds of the host beside a part's calls, in each pass."""

    forward: int
    backward: int = 0


ATTENTION = Code(57)
"""Choosing a kernel for attention, norms of heads, rotations."""
ROUTER = Code(26)
"""Scores, the best few, the auxiliary loss."""
EXPERTS = Code(40, 10)
"""Grouped linear layers and what stands around them."""
EXCHANGE = Code(53, 33)
"""NCCL's all-to-all of as many tokens as come: how many go where, permutations before and behind it, sorting by
expert and back."""
