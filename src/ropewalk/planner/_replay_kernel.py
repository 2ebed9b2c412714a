"""Replay the step of a candidate: one rank of every stage, every pass replayed, without contention.

Every operation of a step has a copy for each rank, or group of ranks, of its stage. Two times are carried for it: the
earliest at which any copy can be over, and one before which the last copy is not over. A copy waits for copies that it
shares a rank with, takes no less than it would alone, and all copies together put no more on a link than it carries.
So the last time of all is no later than that of the simulated step: it is an estimate and a lower bound at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.planner._legs_kernel import (
    AHEAD,
    BACK,
    BACK_REDUCING,
    INPUTS,
    WEIGHTS,
    WEIGHTS_REDUCING,
    LayerArrays,
    PassLegs,
    written_down,
)  # fmt: skip
from ropewalk.planner._rows_kernel import WRITTEN, ahead_of, entry
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.layers import Held
from ropewalk.planner.written import WrittenRows
from ropewalk.pointer import point_at

SPLITTING, CUT, STAGES, PIECES_EACH = (int(Column[name]) for name in ("SPLITTING", "CUT", "STAGES", "PIECES_EACH"))
MICRO_BATCHES, RULE, WRITTEN_AT, ZERO = (int(Column[name]) for name in ("MICRO_BATCHES", "RULE", "WRITTEN", "ZERO"))
REPLICAS, EXPERT_COPIES = int(Column.REPLICAS), int(Column.EXPERT_COPIES)
TENSOR, CONTEXT = int(Column.TENSOR), int(Column.CONTEXT)
SEQUENCE, LAYOUT, LOADS = int(Column.SEQUENCE), int(Column.LAYOUT), int(Column.LOADS)
ELEMENT_BYTES, GRADIENT_BYTES = int(Setting.ELEMENT_BYTES), int(Setting.GRADIENT_BYTES)
PREFETCH, SCATTER_GATHER = int(Setting.PREFETCH), int(Setting.SCATTER_GATHER)
SENT_LESS_BYTES = int(Setting.SENT_LESS_BYTES)
GATHER_AHEAD, REDUCE_LATE = int(Setting.GATHER_AHEAD), int(Setting.REDUCE_LATE)
TENSOR_GATHER, TIED_SUM = int(Channel.TENSOR_GATHER), int(Channel.TIED)
REDUCE = np.array([int(Channel.DATA_REDUCE), int(Channel.EXPERT_REDUCE)])
SCATTER = np.array([int(Channel.DATA_SCATTER), int(Channel.EXPERT_SCATTER)])
GATHER = np.array([int(Channel.DATA_GATHER), int(Channel.EXPERT_GATHER)])
SEND_ON, SEND_BACK = int(Channel.SEND_ON), int(Channel.SEND_BACK)
DENSE, EXPERTS, TIED, EMBEDDING = Held.DENSE, Held.EXPERT, Held.TIED, Held.EMBEDDING
OUTPUT, NARROW, NARROW_EXPERT = Held.OUTPUT, Held.NARROW, Held.NARROW_EXPERT

CURSOR, ARRIVED, BEFORE, DATA, WEIGHTS_GATHERED, SENT_ON, SENT_BACK = range(7)
"""Times of a stage: what its next operation waits for, what it waits for besides, what the leg before waited for, and
the last operation on each stream that keeps its own order."""


class ReplayCosts(NamedTuple):
    """What communication costs and which links it loads, by layout."""

    costs: Floats
    """By stage of a layout and channel: seconds per collective, per byte alone, per byte of all copies together."""
    row_start: Ints
    """By layout: the links that can be the busiest; one number more at the end."""
    term_start: Ints
    """By link: its terms; one number more at the end."""
    term: Ints
    """Stage and channel of a term: stage * CHANNELS + channel."""
    load: Floats
    """Seconds per byte of that channel."""


class ReplayState(NamedTuple):
    """Where a replay stands."""

    time: Floats
    """By stage and `CURSOR` …: the first copy, the last one."""
    gathered: Ints
    """By stage: the layer whose weights were gathered last."""
    ready: Floats
    """By direction, piece and micro-batch: when the input of a pass is there; not a number until it is known."""
    used: Floats
    """Bytes by stage and channel."""
    over: Floats
    """Where an operation that nobody asks about leaves its end."""
    owed: Floats
    """By stage: seconds of gradients that wait for the end of the backward pass, of one copy and more of the last."""


@kernel
def replay_all(
    candidates: Ints, chosen: Ints, model: LayerArrays, written: WrittenRows, network: ReplayCosts, settings: Floats,
    updates: Floats, found: Floats,
) -> None:  # fmt: skip
    """For the chosen candidates: seconds of the replay, and of the busiest link."""
    model, written, network = point_at(model), point_at(written), point_at(network)
    for at in chosen:
        found[at, 0], found[at, 1] = _replay(candidates[at], model, written, network, settings, updates[at])


@kernel
def _replay(
    one: Ints, model: LayerArrays, written: WrittenRows, network: ReplayCosts, settings: Floats, updates: Floats
) -> tuple[float, float]:
    """One candidate: its passes in order, its stages at the pace of their hosts."""
    stages, pieces = one[STAGES], one[STAGES] * one[PIECES_EACH]
    homes, paces, legs, used = written_down(one, model, written, network.costs, settings, updates)
    ready = np.full((2, pieces, one[MICRO_BATCHES], 2), np.nan)
    run = ReplayState(np.zeros((stages, 7, 2)), np.full(stages, -1), ready, used, np.zeros(2), np.zeros((stages, 2)))
    run.time[:, 1:, :] = -np.inf
    ready[0, 0], ready[1, pieces - 1] = -np.inf, -np.inf
    found: tuple[float, float] = _replayed(one, model, written, network, settings, updates, homes, paces, legs, run)
    return found


@kernel
def _replayed(
    one: Ints, model: LayerArrays, written: WrittenRows, network: ReplayCosts, settings: Floats, updates: Floats,
    homes: Ints, paces: Floats, legs: PassLegs, run: ReplayState,
) -> tuple[float, float]:  # fmt: skip
    legs, run = point_at(legs), point_at(run)
    _all_passes(one, model, written, network, settings, homes, legs, run)
    end = _finish(one, model, network, settings, homes, paces, updates, run)
    return end, busiest(one, network, run.used)


@kernel
def _all_passes(
    one: Ints,
    model: LayerArrays,
    written: WrittenRows,
    network: ReplayCosts,
    settings: Floats,
    homes: Ints,
    legs: PassLegs,
    run: ReplayState,
) -> None:
    """Every stage goes through its row; one that waits for input is come back to."""
    stages, many, each, rule = one[STAGES], one[MICRO_BATCHES], one[PIECES_EACH], one[RULE]
    at, ahead = np.zeros(stages, np.int64), np.zeros(stages, np.int64)
    left = 0
    for stage in range(stages):
        if rule == WRITTEN:
            row = written.row_start[one[WRITTEN_AT]] + stage
            left += written.row[row + 1] - written.row[row]
        else:
            ahead[stage] = ahead_of(rule, stages, stage, many, each)
            left += 2 * many * each
    while left > 0:
        before = left
        for stage in range(stages):
            while True:
                if rule == WRITTEN:
                    row = written.row_start[one[WRITTEN_AT]] + stage
                    where = written.row[row] + at[stage]
                    if where >= written.row[row + 1]:
                        break
                    kind, piece, number = written.kind[where], written.piece[where], written.micro_batch[where]
                    last = written.last[where]
                else:
                    if at[stage] >= 2 * many * each:
                        break
                    kind, piece, number = entry(rule, stages, stage, many, each, ahead[stage], at[stage])
                    last = kind == 1 and number == many - 1
                direction = 0 if kind == 0 else 1
                if kind != 3 and np.isnan(run.ready[direction, piece, number, 0]):
                    break
                _one_pass(one, model, network, settings, homes, legs, run, stage, kind, piece, number, last)
                at[stage] += 1
                left -= 1
        if left == before:
            raise ValueError("a schedule waits for itself")


@kernel
def _one_pass(
    one: Ints, model: LayerArrays, network: ReplayCosts, settings: Floats, homes: Ints, legs: PassLegs,
    run: ReplayState, stage: int, kind: int, piece: int, number: int, last: bool,
) -> None:  # fmt: skip
    """Receive, run and hand on one pass."""
    pieces = one[STAGES] * one[PIECES_EACH]
    costs = network.costs[one[LAYOUT] + stage]
    if kind != 3:
        _receive(one, model, settings, homes, run, costs, stage, kind, piece, number)
    reducing = last or one[ZERO] >= 2
    if kind == 0:
        sort = AHEAD
    elif kind == 1:
        sort = BACK_REDUCING if reducing else BACK
    elif kind == 2:
        sort = INPUTS
    else:
        sort = WEIGHTS_REDUCING if reducing else WEIGHTS
    for leg in range(legs.start[sort * pieces + piece], legs.end[sort * pieces + piece]):
        _run_leg(one, settings, legs, run, costs, stage, leg)
    if kind == 0 and number == 0 and settings[GATHER_AHEAD] > 0 and one[ZERO] == 1:
        _gather_updated(one, model, settings, run, costs, stage, piece)
    if kind == 3:
        return
    taker = piece + 1 if kind == 0 else piece - 1
    if 0 <= taker < pieces:
        _send(one, model, settings, homes, run, costs, stage, kind, piece, taker, number)


@kernel
def _receive(
    one: Ints, model: LayerArrays, settings: Floats, homes: Ints, run: ReplayState, costs: Floats, stage: int,
    kind: int, piece: int, number: int,
) -> None:  # fmt: skip
    """Wait for what was sent to a pass; parts are gathered by the tensor ranks."""
    direction = 0 if kind == 0 else 1
    giver = piece - 1 if kind == 0 else piece + 1
    if not 0 <= giver < len(homes) or homes[giver] == stage:
        return
    _latest(run.time[stage, ARRIVED], run.ready[direction, piece, number])
    if one[TENSOR] > 1 and not one[SEQUENCE] and settings[SCATTER_GATHER] > 0:
        size = crossing(one, model, settings, min(piece, giver)) / one[CONTEXT]
        run.used[stage, TENSOR_GATHER] += size
        _in_order(run.time[stage], *cost_of(costs[TENSOR_GATHER], size, 1.0))


@kernel
def _send(
    one: Ints, model: LayerArrays, settings: Floats, homes: Ints, run: ReplayState, costs: Floats, stage: int,
    kind: int, piece: int, taker: int, number: int,
) -> None:  # fmt: skip
    """Hand the result of a pass to the next piece."""
    direction, peer = 0 if kind == 0 else 1, homes[taker]
    there = run.ready[direction, taker, number]
    if peer == stage:
        there[0], there[1] = -np.inf, -np.inf  # the order of the stage is enough
        return
    size = crossing(one, model, settings, min(piece, taker)) / one[CONTEXT]
    if one[TENSOR] > 1 and (one[SEQUENCE] or settings[SCATTER_GATHER] > 0):
        size /= one[TENSOR]
    on = peer == (stage + 1) % one[STAGES]
    channel, stream = (SEND_ON, SENT_ON) if on else (SEND_BACK, SENT_BACK)
    run.used[stage, channel] += size
    time = run.time[stage]
    _chained(time[CURSOR], time[ARRIVED], time[stream], *cost_of(costs[channel], size, 1.0), there)


@kernel
def crossing(one: Ints, model: LayerArrays, settings: Floats, piece: int) -> float:
    """Bytes that a piece hands to the next one."""
    last = model.cuts[one[CUT] + piece + 1] - 1
    return float(model.held[one[SPLITTING], last, OUTPUT] * settings[ELEMENT_BYTES])


@kernel
def _run_leg(
    one: Ints, settings: Floats, legs: PassLegs, run: ReplayState, costs: Floats, stage: int, leg: int
) -> None:
    time = run.time[stage]
    if legs.layer[leg] >= 0 and legs.layer[leg] != run.gathered[stage]:
        for sort in range(2):
            size = legs.gather[leg, sort]
            if size > 0:
                run.used[stage, GATHER[sort]] += size
                since, besides = (BEFORE, BEFORE) if settings[PREFETCH] > 0 else (CURSOR, ARRIVED)
                alone, later = cost_of(costs[GATHER[sort]], size, 1.0)
                _chained(time[since], time[besides], time[WEIGHTS_GATHERED], alone, later, run.over)
        run.gathered[stage] = legs.layer[leg]
        _latest(time[ARRIVED], time[WEIGHTS_GATHERED])
    time[BEFORE, 0], time[BEFORE, 1] = time[CURSOR, 0], time[CURSOR, 1]
    _in_order(time, legs.alone[leg], legs.later[leg])
    for sort in range(2):
        size = legs.reduce[leg, sort]
        if size > 0:
            channel = SCATTER[sort] if one[ZERO] else REDUCE[sort]
            run.used[stage, channel] += size
            alone, later = cost_of(costs[channel], size, legs.times[leg, sort])
            if settings[REDUCE_LATE] > 0 and one[ZERO] < 2:
                run.owed[stage, 0] += alone
                run.owed[stage, 1] += later
            else:
                _chained(time[CURSOR], time[ARRIVED], time[DATA], alone, later, run.over)


@kernel
def _gather_updated(
    one: Ints, model: LayerArrays, settings: Floats, run: ReplayState, costs: Floats, stage: int, piece: int
) -> None:  # fmt: skip
    """The first pass through a piece is not over before the updated weights of its last layers are there."""
    pieces = one[STAGES] * one[PIECES_EACH]
    stop = model.cuts[one[CUT] + piece + 1] if piece + 1 < pieces else model.held.shape[1]
    for sort in range(2):
        if (one[REPLICAS] if sort == 0 else one[EXPERT_COPIES]) < 2:
            continue
        size = 0.0
        for layer in range(model.cuts[one[CUT] + piece], stop):
            held = model.held[one[SPLITTING], layer]
            count, narrow = held[EXPERTS], held[NARROW_EXPERT]
            if sort == 0:
                count, narrow = held[DENSE], held[NARROW] - held[NARROW_EXPERT]
            size += count * settings[ELEMENT_BYTES] - min(count, narrow) * settings[SENT_LESS_BYTES]
        if size > 0:
            run.used[stage, GATHER[sort]] += size
            nothing = np.full(2, -np.inf)
            alone, later = cost_of(costs[GATHER[sort]], size, 1.0)
            _chained(nothing, nothing, run.time[stage, WEIGHTS_GATHERED], alone, later, run.over)
    _latest(run.time[stage, CURSOR], run.time[stage, WEIGHTS_GATHERED])


@kernel
def cost_of(costs: Floats, size: float, times: float) -> tuple[float, float]:
    """Seconds of one copy of a collective on a channel, and by how much the last of all copies may be over later."""
    alone = costs[0] * times + costs[1] * size
    return alone, (costs[2] - costs[1]) * size


@kernel
def _in_order(time: Floats, alone: float, later: float) -> None:
    """An operation that the stage cannot go on without."""
    first = max(time[CURSOR, 0], time[ARRIVED, 0])
    last = max(time[CURSOR, 1], time[ARRIVED, 1])
    time[CURSOR, 0] = first + alone
    time[CURSOR, 1] = max(last + alone, first + alone + later)
    time[ARRIVED, 0], time[ARRIVED, 1] = -np.inf, -np.inf


@kernel
def _chained(since: Floats, besides: Floats, stream: Floats, alone: float, later: float, end: Floats) -> None:
    """An operation beside the computation, behind the last one on its own stream."""
    first = max(since[0], besides[0], stream[0], 0.0)
    last = max(since[1], besides[1], stream[1], 0.0)
    end[0] = first + alone
    end[1] = max(last + alone, first + alone + later)
    stream[0], stream[1] = end[0], end[1]


@kernel
def _latest(time: Floats, other: Floats) -> None:
    time[0], time[1] = max(time[0], other[0]), max(time[1], other[1])


@kernel
def _finish(
    one: Ints,
    model: LayerArrays,
    network: ReplayCosts,
    settings: Floats,
    homes: Ints,
    paces: Floats,
    updates: Floats,
    run: ReplayState,
) -> float:
    """Tied embeddings, the update, weights that were updated gathered again; the end of everything."""
    stages = one[STAGES]
    held = np.zeros((stages, 6))
    pieces, layers = len(homes), model.held.shape[1]
    for piece in range(pieces):
        stop = model.cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
        for layer in range(model.cuts[one[CUT] + piece], stop):
            for at, column in enumerate((DENSE, EXPERTS, TIED, EMBEDDING, NARROW, NARROW_EXPERT)):
                held[homes[piece], at] += model.held[one[SPLITTING], layer, column]
    end, size = 0.0, settings[ELEMENT_BYTES]
    for stage in range(stages):
        if held[stage, 3] > 0:
            held[stage, 2] = 0.0  # the embedding itself is here
    for stage in range(stages):
        if run.owed[stage, 0] > 0:
            time, owed = run.time[stage], run.owed[stage]
            _chained(time[CURSOR], time[ARRIVED], time[DATA], owed[0], owed[1], run.over)
    _tie(one, network, settings, held, run)
    replicas, copies = one[REPLICAS], one[EXPERT_COPIES]
    for stage in range(stages):
        time, costs = run.time[stage], network.costs[one[LAYOUT] + stage]
        end = max(end, time[SENT_ON, 1], time[SENT_BACK, 1])
        _latest(time[ARRIVED], time[DATA])
        _in_order(time, paces[stage] * updates[stage, 0], 0.0)
        end = max(end, time[CURSOR, 1])
        if (one[ZERO] == 1 and settings[GATHER_AHEAD] == 0) or one[ZERO] == 2:
            for sort in range(2):
                count = held[stage, 0] + held[stage, 2] if sort == 0 else held[stage, 1]
                narrow = held[stage, 4] - held[stage, 5] if sort == 0 else held[stage, 5]
                if count > 0 and (replicas if sort == 0 else copies) > 1:
                    sent = count * size - min(held[stage, sort], narrow) * settings[SENT_LESS_BYTES]
                    run.used[stage, GATHER[sort]] += sent
                    alone, later = cost_of(costs[GATHER[sort]], sent, 1.0)
                    _chained(time[CURSOR], time[ARRIVED], time[WEIGHTS_GATHERED], alone, later, run.over)
                    end = max(end, run.over[1])
    return float(end)


@kernel
def _tie(one: Ints, network: ReplayCosts, settings: Floats, held: Floats, run: ReplayState) -> None:
    """Sum the gradients of an embedding that two stages hold between the two."""
    for stage in range(one[STAGES]):
        if held[stage, 2] == 0:
            continue
        for owner in range(one[STAGES]):
            if held[owner, 3] > 0:
                size = held[stage, 2] * settings[GRADIENT_BYTES]
                run.used[owner, TIED_SUM] += size
                alone, later = cost_of(network.costs[one[LAYOUT] + owner, TIED_SUM], size, 1.0)
                since, over = np.zeros(2), np.empty(2)
                for side in (owner, stage):
                    for what in (CURSOR, ARRIVED, DATA):
                        _latest(since, run.time[side, what])
                over[0] = since[0] + alone
                over[1] = max(since[1] + alone, since[0] + alone + later)
                _latest(run.time[owner, DATA], over)
                _latest(run.time[stage, DATA], over)
                break


@kernel
def busiest(one: Ints, network: ReplayCosts, used: Floats) -> float:
    """Seconds in which the busiest link carries all bytes of the step."""
    most = 0.0
    for link in range(network.row_start[one[LOADS]], network.row_start[one[LOADS] + 1]):
        busy = 0.0
        for term in range(network.term_start[link], network.term_start[link + 1]):
            where = network.term[term]
            busy += network.load[term] * used[where // CHANNELS, where % CHANNELS]
        most = max(most, busy)
    return most
