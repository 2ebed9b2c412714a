"""Attention that PyTorch cannot fuse: products in float32 whose scores go to memory.

`scaled_dot_product_attention` has fused kernels only for masks that lie in memory as they are read
(`check_last_dim_stride_equals_1_dense` in its `sdp_utils_cpp.h`). transformers writes a mask that hides nothing as one
number spread over all keys when it is compiled, since it may not look into it then (`masking_utils.py`; left out in
eager mode): attention that looks both ways falls back to the plain formula. That widens queries, keys and values of 16
bits to float32 first (PyTorch's notes on numerical accuracy), and torch.compile makes two products and one kernel
between them of it, which none of its patterns for attention match (pytorch, pull request 185574). The kernels and what
is kept are those of the graphs that PyTorch 2.13 compiles (`TORCH_LOGS=aot_graphs`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.wide import WIDE, pointwise

MASK = 1.0 / WIDE
"""What of a score was dropped, a byte, as part of a number."""


@dataclass(frozen=True)
class AttentionSizes:
    """Queries, keys and values of attention."""

    heads: int
    """Heads of all samples."""
    queries: int
    keys: int
    size: int
    dropped: bool

    @property
    def scores(self) -> int:
        return self.heads * self.queries * self.keys

    @property
    def query(self) -> int:
        return self.heads * self.queries * self.size

    @property
    def key(self) -> int:
        return self.heads * self.keys * self.size


def forward(sizes: AttentionSizes) -> tuple[Kernel, ...]:
    """Operands in float32, scores, one kernel from scores to what multiplies values, and the result in 16 bits.

    The kernel between the products reads scores row by row, makes a random number for each, and writes weights and what
    was dropped.
    """
    heads, queries, keys, size = sizes.heads, sizes.queries, sizes.keys, sizes.size
    draws = sizes.scores if sizes.dropped else 0
    return (
        _widened(sizes.query), _widened(sizes.key), _widened(sizes.key),
        k.matmul("forward", queries, keys, size, heads, wide=True),
        pointwise("map", sizes.scores, 1, 1 + MASK * sizes.dropped, draws=draws),
        k.matmul("input_grad", queries, size, keys, heads, wide=True),
        _narrowed(sizes.query),
    )  # fmt: skip


def backward(sizes: AttentionSizes) -> tuple[Kernel, ...]:
    """The gradient in float32, the gradients of both products, and their way back to 16 bits.

    Between the products the gradients of scores are made from those of weights, in one kernel that reads what was kept.
    """
    heads, queries, keys, size = sizes.heads, sizes.queries, sizes.keys, sizes.size
    return (
        _widened(sizes.query),
        k.matmul("weight_grad", keys, size, queries, heads, wide=True),
        k.matmul("forward", queries, keys, size, heads, wide=True),
        pointwise("map", sizes.scores, 2 + MASK * sizes.dropped, 1),
        k.matmul("input_grad", queries, size, keys, heads, wide=True),
        k.matmul("weight_grad", keys, size, queries, heads, wide=True),
        _narrowed(sizes.query), *(_narrowed(sizes.key),) * 2,
    )  # fmt: skip


def kept_bytes(sizes: AttentionSizes) -> float:
    """Queries, keys, values and the weights that multiply values, in float32.

    Where some are dropped, what was dropped and the scores, too: all weights are made from them anew.
    """
    each = 2 * WIDE + 1 if sizes.dropped else WIDE
    return each * sizes.scores + WIDE * (sizes.query + 2 * sizes.key)


def _widened(elements: int) -> Kernel:
    """Numbers of the step's precision, scaled and brought together by heads, in float32."""
    return Kernel("pointwise", "map", (elements, 1, 1), elements, elements, 0.0, WIDE * elements)


def _narrowed(elements: int) -> Kernel:
    """The way back: as many bytes the other way."""
    return Kernel("pointwise", "map", (elements, 1, 1), elements, 0.0, elements, WIDE * elements)
