"""How fast a device adds one buffer to another, as reductions of collectives do."""

from __future__ import annotations

from functools import partial

import torch

from ropewalk.device.measure.clock import own_stream, seconds

BUFFER_BYTES = 64 * 2**20
"""Of float32 gradients: larger than caches, and as much as a large bucket."""
PAIRS = 2
"""Buffers that take turns, so that none is in a cache when its turn comes."""


def adding(where: str) -> float:
    """Bytes/s of float32 numbers that are added to others of the same length."""
    numbers = BUFFER_BYTES // torch.float32.itemsize
    with own_stream(where):
        into, given = (torch.ones(PAIRS, numbers, device=where) for _ in range(2))
        runs = [partial(torch.Tensor.add_, into[pair], given[pair]) for pair in range(PAIRS)]
        return BUFFER_BYTES / seconds(runs, where)
