"""An add that keeps to as many multiprocessors as it is told: each program walks over its share of the numbers.

Alone in its file: Triton reads the source and the annotations as they stand.
"""

import triton
import triton.language as tl

BLOCK, WARPS = 16384, 32
"""Numbers that a program adds at once, and its warps: so many that no second program fits onto a multiprocessor."""


@triton.jit
def _add(into, given, numbers, block: tl.constexpr):
    first = tl.program_id(0) * block
    stride = tl.num_programs(0) * block
    for begin in range(first, numbers, stride):
        at = begin + tl.arange(0, block)
        inside = at < numbers
        total = tl.load(into + at, mask=inside) + tl.load(given + at, mask=inside)
        tl.store(into + at, total, mask=inside)


def add(into, given, programs):
    """into += given, on `programs` multiprocessors."""
    _add[(programs,)](into, given, into.numel(), block=BLOCK, num_warps=WARPS)
