"""Buckets as PyTorch's DistributedDataParallel makes and launches them.

Gradients fill buckets in the order in which they are ready. A bucket is closed by the tensor that brings it to its cap.
Buckets are launched strictly in order, each when it is full and the one before has been launched, and the step waits
for all of them: no reordering, nothing that reaches into the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.errors import GraphError
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import in_ready_order, timed
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import Tensors

MIB = 1 << 20
DEFAULT_CAP_BYTES = 25 * MIB
FIRST_CAP_BYTES = MIB


def bucket_caps(cap_bytes: float | None = None) -> tuple[float, ...]:
    """Caps of the buckets, the last one for all that follow.

    The first bucket is small only where the cap is left alone: a cap that is given is the first bucket's too.

    >>> bucket_caps(), bucket_caps(25 * MIB)
    ((1048576, 26214400), (26214400,))
    """
    return (FIRST_CAP_BYTES, DEFAULT_CAP_BYTES) if cap_bytes is None else (cap_bytes,)


def buckets(tensors: Tensors, caps: Sequence[float] = (FIRST_CAP_BYTES, DEFAULT_CAP_BYTES)) -> Groups:
    """The tensors of each bucket; the last cap holds for all further buckets.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> buckets(from_layers([3, 2, 2, 1], backward_s=[1] * 4, forward_s=[1] * 4), caps=[1, 4]).members
    ((3,), (2, 1), (0,))
    """
    if not caps or min(caps) <= 0:
        raise GraphError(f"caps of buckets {list(caps)} cannot be filled: give one positive cap or more")
    order, ends = tensors.in_ready_order, []
    filled, closed = 0.0, 0
    for position, tensor in enumerate(order, 1):
        filled += float(tensors.size_bytes[tensor])
        if filled >= caps[min(closed, len(caps) - 1)] or position == len(order):
            ends.append(position)
            filled, closed = 0.0, closed + 1
    return Groups.cut(order, ends)


def groups_with_barrier_s(tensors: Tensors, link: Link, groups: Groups) -> float:
    """Seconds of a step that launches groups in order and waits for all of them before anything goes on."""
    run = timed(sums := one_stream_sums(tensors), link, in_ready_order(sums, groups))
    return tensors.step_s(run.arrival_s, barrier=True)
