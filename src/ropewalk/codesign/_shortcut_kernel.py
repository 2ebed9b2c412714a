"""Kernel: byte-hops that each possible cable would save for what its sender sends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def saved_for_senders(
    hops: NDArray[np.int64],
    demand: NDArray[np.int64],
    senders: NDArray[np.int64],
    receivers: NDArray[np.int64],
    saved: NDArray[np.int64],
) -> None:
    """Add to saved[a, b] the demand of a times the hops by which a cable from a to b brings it nearer.

    All whole numbers: exact, so that equally good cables are equal on every machine.
    """
    for a in senders:
        from_a, sent = hops[a], demand[a]
        if not sent.any():
            continue
        for b in receivers:
            from_b, total = hops[b], np.int64(0)
            for t in range(len(sent)):
                total += max(from_a[t] - 1 - from_b[t], np.int64(0)) * sent[t]
            saved[a, b] += total
