"""The kernel of the published zero-bubble heuristic: micro-batch by micro-batch, stage by stage, one piece per device.

`lay` decides when a device is free; here all stages of a micro-batch are placed together, forward passes from the first
stage on and gradients of inputs from the last one back, so that each stage knows when its input will arrive.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.timetable.passes import Pass

FORWARD, INPUT, WEIGHT = int(Pass.FORWARD), int(Pass.INPUT), int(Pass.WEIGHT)


@kernel
def _place(kind, stage, seconds, send, done, over, free, idle, held, kept, laid):  # type: ignore[no-untyped-def]
    """Put the next pass of a kind on a stage: behind its last pass, and behind the arrival of what it needs."""
    number = done[kind, stage]
    end = free[stage] + seconds[kind, stage]
    begin = free[stage]
    if kind == FORWARD and stage > 0:
        begin = max(begin, over[FORWARD, stage - 1, number] + send[0, stage - 1])
    if kind == INPUT and stage + 1 < len(free):
        begin = max(begin, over[INPUT, stage + 1, number] + send[1, stage])
    if done[FORWARD, stage] > 0:
        idle[stage] += begin + seconds[kind, stage] - end
    free[stage] = over[kind, stage, number] = begin + seconds[kind, stage]
    if kind == FORWARD:
        held[stage] += kept[stage]
    elif kind == WEIGHT:
        held[stage] -= kept[stage]
    done[kind, stage] += 1
    at = done[FORWARD, stage] + done[INPUT, stage] + done[WEIGHT, stage] - 1
    laid[stage, at, 0], laid[stage, at, 1] = kind, number


@kernel
def _fill(stage, due, greedy, seconds, send, done, over, free, idle, held, kept, laid):  # type: ignore[no-untyped-def]
    """Gradients of weights that fit before `due`, and one more where a bubble would cost more than it delays."""
    while done[WEIGHT, stage] < done[INPUT, stage] and free[stage] + seconds[WEIGHT, stage] <= due:
        _place(WEIGHT, stage, seconds, send, done, over, free, idle, held, kept, laid)
    # A bubble here does not count while another stage has a longer one.
    counts = greedy or due - free[stage] > idle.max() - idle[stage]
    if done[WEIGHT, stage] < done[INPUT, stage] and free[stage] < due and counts:
        _place(WEIGHT, stage, seconds, send, done, over, free, idle, held, kept, laid)


@kernel
def _warm_up(bubble, limit, batches, seconds, send, over, free, held, kept):  # type: ignore[no-untyped-def]
    """Forward passes of every stage, besides the first one, before its first gradient of inputs."""
    stages = len(free)
    more = np.zeros(stages, np.int64)
    back = over[FORWARD, stages - 1, 0] + seconds[INPUT, stages - 1]
    for stage in range(stages - 2, -1, -1):
        memory, now = held[stage], free[stage]
        while 1 + more[stage] < batches and memory + kept[stage] <= limit:
            ends = now + seconds[FORWARD, stage]
            if (bubble and ends > back + send[1, stage]) or (not bubble and now >= back + send[1, stage]):
                break
            memory, now = memory + kept[stage], ends
            more[stage] += 1
        back = max(now, back + send[1, stage]) + seconds[INPUT, stage]
    for stage in range(1, stages):
        while more[stage] > 0 and more[stage] >= more[stage - 1] and 1 + more[stage] < batches:
            more[stage] -= 1
        # Released code runs into an assertion where a stage has time for more than the one before it has run.
        more[stage] = min(more[stage], more[stage - 1])
    return more


@kernel
def _goes_forward(stage, limit, backward_first, batches, seconds, send, done, free, idle, held, kept):  # type: ignore[no-untyped-def]
    """Does a stage run another forward pass before the gradients of this micro-batch come back?"""
    front = done[FORWARD, stage]
    if front >= batches:
        return False
    if not backward_first or stage + 1 == len(free) or front < done[FORWARD, stage + 1] + 2:
        return True
    following = stage + 1
    back = free[following] + seconds[FORWARD, following] + seconds[INPUT, following] + send[1, stage]
    if free[stage] >= back:
        return False
    memory, weights, count = held[stage] + kept[stage], 0.0, 0
    while memory > limit and done[WEIGHT, stage] + count < done[INPUT, stage]:
        weights, memory, count = weights + seconds[WEIGHT, stage], memory - kept[stage], count + 1
    if free[stage] + seconds[FORWARD, stage] + weights <= back:
        return True
    return back - free[stage] > idle.max() - idle[stage]


@kernel
def lay_stage_by_stage(
    forward: Floats,
    backward: Floats,
    weight: Floats,
    send_forward: Floats,
    send_backward: Floats,
    kept: Floats,
    limit: float,
    bubble: bool,
    backward_first: bool,
    greedy: bool,
    batches: int,
) -> Ints:
    """Kind and micro-batch of the passes of every stage in order: [stage, place, 2]; empty where memory does not do.

    The heuristic of Qi et al. (Zero bubble pipeline parallelism, 2024, section 3.1 and its released scheduler): run
    ahead until the first gradients come back (with `bubble` rather wait for them than delay them), then a forward pass
    and gradients of inputs by turns; gradients of weights fill what would be idle. `backward_first` leaves a forward
    pass out where it would delay gradients, `greedy` fills a bubble even where another stage has a longer one.
    """
    stages = len(forward)
    seconds = np.zeros((4, stages))
    seconds[FORWARD], seconds[INPUT], seconds[WEIGHT] = forward, backward, weight
    send = np.zeros((2, stages))
    send[0, : stages - 1], send[1, : stages - 1] = send_forward, send_backward
    done = np.zeros((4, stages), np.int64)
    over = np.zeros((4, stages, batches))
    free, idle, held = np.zeros(stages), np.zeros(stages), np.zeros(stages)
    laid = np.zeros((stages, 3 * batches, 2), np.int64)
    for stage in range(stages):
        if kept[stage] > limit:
            return laid[:0]
        _place(FORWARD, stage, seconds, send, done, over, free, idle, held, kept, laid)
    more = _warm_up(bubble, limit, batches, seconds, send, over, free, held, kept)
    for stage in range(stages):
        for _ in range(more[stage]):
            _place(FORWARD, stage, seconds, send, done, over, free, idle, held, kept, laid)
    for stage in range(stages - 1, -1, -1):
        _place(INPUT, stage, seconds, send, done, over, free, idle, held, kept, laid)
    ahead = np.zeros(stages, np.bool_)
    for number in range(1, batches):
        for stage in range(stages - 1, -1, -1):
            goes = _goes_forward(stage, limit, backward_first, batches, seconds, send, done, free, idle, held, kept)
            ahead[stage] = goes and (stage + 1 == stages or ahead[stage + 1])
        for stage in range(stages):
            if not ahead[stage]:
                continue
            while held[stage] + kept[stage] > limit:
                if done[WEIGHT, stage] >= done[INPUT, stage]:
                    return laid[:0]
                _place(WEIGHT, stage, seconds, send, done, over, free, idle, held, kept, laid)
            if stage > 0:
                due = over[FORWARD, stage - 1, done[FORWARD, stage]] + send[0, stage - 1]
                _fill(stage, due, greedy, seconds, send, done, over, free, idle, held, kept, laid)
            _place(FORWARD, stage, seconds, send, done, over, free, idle, held, kept, laid)
        for stage in range(stages - 1, -1, -1):
            if stage + 1 < stages:
                due = over[INPUT, stage + 1, number] + send[1, stage]
                _fill(stage, due, greedy, seconds, send, done, over, free, idle, held, kept, laid)
            if stage == 0 and done[FORWARD, 0] == batches:
                while done[WEIGHT, 0] < done[INPUT, 0]:
                    _place(WEIGHT, 0, seconds, send, done, over, free, idle, held, kept, laid)
            _place(INPUT, stage, seconds, send, done, over, free, idle, held, kept, laid)
    for stage in range(stages):
        while done[WEIGHT, stage] < batches:
            _place(WEIGHT, stage, seconds, send, done, over, free, idle, held, kept, laid)
    return laid
