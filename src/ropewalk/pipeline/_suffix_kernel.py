"""One more stage in front of pipelines that reach the end of the model: the planner's inner loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints32
from ropewalk.compiled import kernel


class Suffixes(NamedTuple):
    """What is kept for one set of occupied GPUs: arrays [state, slot]."""

    work: Floats
    left: Floats
    gpus: Ints32
    depth: Ints32
    estimate: Floats
    came: Ints32
    """[state, slot, 3]: (source set, state j, slot there)."""


class Suffix(NamedTuple):
    """A pipeline from some state to the end of the model; the fields of `Suffixes`."""

    work: float
    left: float
    gpus: int
    depth: int
    estimate: float


class StageSums(NamedTuple):
    """Running sums over groups of states for one GPU of a stage."""

    forward: Floats
    backward: Floats
    hiding: Floats
    """Seconds that hide sums of gradients."""
    weights: Floats
    held: Floats
    kept: Floats
    entering: Floats


class Sending(NamedTuple):
    """To the stage behind: bytes at every cut, bytes/s to the GPUs of every number, seconds of a start."""

    crossing: Floats
    rate: Floats
    start_up: float


class Summing(NamedTuple):
    """Sums of gradients of a stage: seconds of a start and for each byte; whether they go on beside passes."""

    start_up: float
    per_byte: float
    overlapped: bool


class StepTerms(NamedTuple):
    """Of the whole step."""

    micro_batches: int
    most_in_flight: int
    memory: float
    recompute: bool


class Rest(NamedTuple):
    """What is in front of a state, if it were spread over all GPUs that are free."""

    own: Floats
    backward: Floats
    free: int


@kernel
def put_in_front(
    kept: Suffixes, behind: Suffixes, source: int, chosen: int, stage: StageSums, sending: Sending, summing: Summing,
    terms: StepTerms, rest: Rest,
) -> None:  # fmt: skip
    """Puts every stage i..j-1 on GPUs `chosen` in front of every suffix `behind` that begins at state j.

    A suffix is worth two numbers. `work`: the step up to the last backward pass when the suffix is all there is,
    max over stages s of (passes of stages before s) + M (passes of s). `left`: by how long sums of gradients outlast
    it, max over s of (sum of s) - (backward passes of stages before s). Both can only grow with what is put behind, so
    of two suffixes on the same GPUs one that is smaller in both is always the better one.

    Kept are a few for every state and set of occupied GPUs, those with the best `estimate` of the whole step. A stage
    with n stages behind it keeps n + 1 micro-batches in flight, at most `most_in_flight`.
    """
    source_work, source_left, source_gpus, source_depth = behind.work, behind.left, behind.gpus, behind.depth
    forward, backward, hiding, weights = stage.forward, stage.backward, stage.hiding, stage.weights
    held, stored, entering = stage.held, stage.kept, stage.entering
    crossing, rate = sending.crossing, sending.rate
    micro_batches, recompute = terms.micro_batches, terms.recompute
    rest_own, rest_backward, free = rest.own, rest.backward, rest.free
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
            if summing.overlapped:
                alone = (weights[i + 1] - weights[i]) * summing.per_byte
                tail = alone + max(0.0, tail - (hiding[i + 1] - hiding[i]))
            else:
                tail = size * summing.per_byte
            for k in range(slots):
                if source_work[j, k] == np.inf:
                    break
                stages = source_depth[j, k]
                each = entering[i] if recompute else stored[j] - stored[i]
                full = held[j] - held[i] + min(stages + 1, terms.most_in_flight) * each
                if recompute:
                    full += stored[j] - stored[i]
                if full > terms.memory:
                    continue
                if stages:
                    send = sending.start_up + crossing[j - 1] / rate[source_gpus[j, k]]
                    sent = max(micro_batches * send, 2 * send + source_work[j, k])
                    new_work = max(micro_batches * own, own + sent)
                    new_left = max(tail + summing.start_up, source_left[j, k] - send - own_backward)
                else:
                    new_work = micro_batches * own
                    new_left = tail + summing.start_up
                if i == 0:
                    value = new_work + new_left
                elif free == 0:
                    continue
                else:
                    ideal = rest_own[i] / free
                    value = max(micro_batches * ideal, ideal + new_work)
                    value += max(0.0, new_left - rest_backward[i] / free)
                _keep(kept, i, Suffix(new_work, new_left, chosen, stages + 1, value), source, j, k)


@kernel
def _keep(kept: Suffixes, state: int, new: Suffix, source: int, j: int, k: int) -> None:
    """Keeps slots sorted by estimate; drops the newcomer if one on the same GPUs is as good in everything."""
    work, left, gpus, depth = kept.work[state], kept.left[state], kept.gpus[state], kept.depth[state]
    estimate, came = kept.estimate[state], kept.came[state]
    slots = len(work)
    if new.estimate >= estimate[slots - 1]:
        return
    for slot in range(slots):
        if work[slot] == np.inf:
            break
        if gpus[slot] == new.gpus and depth[slot] <= new.depth and work[slot] <= new.work and left[slot] <= new.left:
            return
    at = slots - 1
    while at > 0 and estimate[at - 1] > new.estimate:
        work[at], left[at], gpus[at], depth[at] = work[at - 1], left[at - 1], gpus[at - 1], depth[at - 1]
        estimate[at] = estimate[at - 1]
        came[at] = came[at - 1]
        at -= 1
    work[at], left[at], gpus[at], depth[at], estimate[at] = new.work, new.left, new.gpus, new.depth, new.estimate
    came[at, 0], came[at, 1], came[at, 2] = source, j, k
