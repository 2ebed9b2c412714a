"""Kernels that work in float32 whatever the step's precision, and the casts between the two.

Careful code widens before it squares, sums or takes logarithms: norms, softmaxes of losses, weights of experts. Such
a kernel moves four bytes an element in every precision, so its traffic is counted in bytes, not in elements.
"""

from __future__ import annotations

from ropewalk.workload.kernel import Kernel, cast

__all__ = ["cast", "integers", "pointwise", "rowwise"]

WIDE = 4.0
"""Bytes of a float32."""


def pointwise(form: str, elements: int, reads: float = 1, writes: float = 1, *, draws: float = 0.0) -> Kernel:
    """Arithmetic on every element of float32 tensors."""
    dims = (elements, _ceiling(reads), _ceiling(writes))
    return Kernel("pointwise", form, dims, elements, 0.0, 0.0, WIDE * elements * (reads + writes), draws=draws)


def rowwise(form: str, rows: int, width: int, reads: float, writes: float) -> Kernel:
    """Softmax and sums along the rows of a float32 tensor."""
    elements = rows * width
    return Kernel("rowwise", form, (rows, width), 5.0 * elements, 0.0, 0.0, WIDE * elements * (reads + writes))


def integers(count: int, each: float = 16.0) -> Kernel:
    """Arithmetic on indices, labels or counters, which are 64-bit whatever the precision: `each` bytes an element."""
    return Kernel("pointwise", "map", (count, 1, 1), count, 0.0, 0.0, each * count)


def _ceiling(tensors: float) -> int:
    return -int(-tensors // 1)
