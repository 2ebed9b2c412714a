"""One more stage in front of pipelines that reach the end of the model: the planner's inner loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints32
from ropewalk.compiled import kernel


@kernel
def put_in_front(
    work: Floats, left: Floats, gpus: Ints32, depth: Ints32, estimate: Floats, came: NDArray[np.int32],
    source_work: Floats, source_left: Floats, source_gpus: Ints32, source_depth: Ints32, source: int, chosen: int,
    forward: Floats, backward: Floats, hiding: Floats, weights: Floats, held: Floats, kept: Floats, entering: Floats,
    crossing: Floats, rate: Floats, start_up: float, sum_start_up: float, sum_per_byte: float, overlapped: bool,
    micro_batches: int, most_in_flight: int, memory: float, recompute: bool,
    rest_own: Floats, rest_backward: Floats, free: int,
) -> None:  # fmt: skip
    """Puts every stage i..j-1 on GPUs `chosen` in front of every kept suffix that begins at state j.

    A suffix is worth two numbers. `work`: the step up to the last backward pass when the suffix is all there is,
    max over stages s of (passes of stages before s) + M (passes of s). `left`: by how long sums of gradients outlast
    it, max over s of (sum of s) - (backward passes of stages before s). Both can only grow with what is put behind, so
    of two suffixes on the same GPUs one that is smaller in both is always the better one.

    Kept are a few for every state and set of occupied GPUs, those with the best `estimate` of the whole step; arrays
    are [state, slot]. `came[state, slot]` is (source set, state j, slot there). `rate[g]` is bytes/s from `chosen` to
    the GPUs numbered g. A stage with n stages behind it keeps n + 1 micro-batches in flight, at most `most_in_flight`.
    """
    states = len(forward) - 1
    slots = source_work.shape[1]
    for j in range(1, states + 1):
        if source_work[j].min() == np.inf:
            continue
        tail = 0.0
        for i in range(j - 1, -1, -1):
            own_backward = backward[j] - backward[i]
            own = forward[j] - forward[i] + own_backward
            size = weights[j] - weights[i]
            if overlapped:
                alone = (weights[i + 1] - weights[i]) * sum_per_byte
                tail = alone + max(0.0, tail - (hiding[i + 1] - hiding[i]))
            else:
                tail = size * sum_per_byte
            for k in range(slots):
                if source_work[j, k] == np.inf:
                    break
                behind = source_depth[j, k]
                each = entering[i] if recompute else kept[j] - kept[i]
                full = held[j] - held[i] + min(behind + 1, most_in_flight) * each
                if recompute:
                    full += kept[j] - kept[i]
                if full > memory:
                    continue
                if behind:
                    send = start_up + crossing[j - 1] / rate[source_gpus[j, k]]
                    sent = max(micro_batches * send, 2 * send + source_work[j, k])
                    new_work = max(micro_batches * own, own + sent)
                    new_left = max(tail + sum_start_up, source_left[j, k] - send - own_backward)
                else:
                    new_work = micro_batches * own
                    new_left = tail + sum_start_up
                if i == 0:
                    value = new_work + new_left
                elif free == 0:
                    continue
                else:
                    ideal = rest_own[i] / free
                    value = max(micro_batches * ideal, ideal + new_work)
                    value += max(0.0, new_left - rest_backward[i] / free)
                _keep(work[i], left[i], gpus[i], depth[i], estimate[i], came[i],
                      new_work, new_left, chosen, behind + 1, value, source, j, k)  # fmt: skip


@kernel
def _keep(
    work: Floats, left: Floats, gpus: Ints32, depth: Ints32, estimate: Floats, came: NDArray[np.int32],
    new_work: float, new_left: float, chosen: int, new_depth: int, value: float, source: int, j: int, k: int,
) -> None:  # fmt: skip
    """Keeps slots sorted by estimate; drops the newcomer if one on the same GPUs is as good in everything."""
    slots = len(work)
    if value >= estimate[slots - 1]:
        return
    for slot in range(slots):
        if work[slot] == np.inf:
            break
        if gpus[slot] == chosen and depth[slot] <= new_depth and work[slot] <= new_work and left[slot] <= new_left:
            return
    at = slots - 1
    while at > 0 and estimate[at - 1] > value:
        work[at], left[at], gpus[at], depth[at] = work[at - 1], left[at - 1], gpus[at - 1], depth[at - 1]
        estimate[at] = estimate[at - 1]
        came[at] = came[at - 1]
        at -= 1
    work[at], left[at], gpus[at], depth[at], estimate[at] = new_work, new_left, chosen, new_depth, value
    came[at, 0], came[at, 1], came[at, 2] = source, j, k
