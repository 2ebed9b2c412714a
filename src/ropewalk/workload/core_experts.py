"""What Megatron-Core launches around the products of experts, as its own code has it (`moe/experts.py`, 2025 and 2026).

Transformer Engine multiplies expert by expert, so what stands between the products is code of Megatron-Core: the gate
is one kernel that also weighs by the router's probabilities; a gate that is clamped (GPT-OSS) is cut in halves,
clamped and joined again before; biases behind the second product are weighed by the probabilities in float32.
"""

from __future__ import annotations

from ropewalk.workload import kernel as k
from ropewalk.workload import wide
from ropewalk.workload.kernel import Kernel

PERMUTED = 1.7
"""Bytes of a plain copy that take as long as one byte of tokens that are put in another order. Transformer Engine's
permutation reaches 0.50 of the memory bandwidth of a B200, and 0.51 on the way back (SimuMax, b200_bf16_ceperm.json),
where copies reach 0.84."""
GLUED_ROWS = 256
"""Rows of an expert that its fused kernels work on at once, in any precision: others are padded to a multiple."""

Kernels = tuple[Kernel, ...]


def permuted(elements: int) -> Kernel:
    """Rows of tokens copied to other places.

    >>> round(permuted(1000).moved_bytes(2))
    6800
    """
    return k.pointwise("map", elements, PERMUTED, PERMUTED)


def gate(neurons: int, *, clamped: bool) -> Kernels:
    """The gate of `neurons` numbers, from twice as many."""
    halves = (k.pointwise("permute", 2 * neurons), k.pointwise("cat", 2 * neurons)) if clamped else ()
    return (*halves, k.pointwise("map", neurons, 2))


def gate_backward(neurons: int, *, clamped: bool) -> Kernels:
    """Its gradients; those of the halves are masked where they were clamped, and joined."""
    halves = (k.pointwise("permute", 2 * neurons, 2), k.pointwise("cat", 2 * neurons)) if clamped else ()
    return (k.pointwise("map", neurons, 3, 2), *halves)


def biases(slots: int, width: int) -> Kernels:
    """Biases times probabilities, added to the rows of each expert, joined, narrowed again."""
    elements = slots * width
    return (
        wide.pointwise("broadcast", elements, 0, 1), wide.pointwise("map", elements, 1.5, 1),
        wide.pointwise("cat", elements), wide.cast(elements),
    )  # fmt: skip


def biases_backward(slots: int, width: int) -> Kernels:
    """Gradients of results, of biases and of probabilities."""
    elements = slots * width
    spread = wide.pointwise("broadcast", elements)
    return (
        wide.cast(elements), wide.cast(elements), k.pointwise("cat", elements),
        spread, wide.rowwise("column_sum", slots, width, 1, 0), spread, wide.rowwise("row_mean", slots, width, 1, 0),
    )  # fmt: skip
