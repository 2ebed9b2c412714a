"""The passes of every piece of a candidate as legs: stretches between moments at which others wait for it.

What `task.lower.passes` writes as moves is here a few numbers per leg. A duration has two parts: what one copy of the
leg takes by itself, and how much later the last of all copies is over because they share links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.planner._memory_kernel import home_of, kind_of
from ropewalk.planner._rows_kernel import WRITTEN
from ropewalk.planner.channels import CHANNELS, IN_LAYERS
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.layers import Held, Hidden, LaunchColumn, PassColumn, Seconds
from ropewalk.planner.written import WrittenRows
from ropewalk.pointer import point_at

AHEAD, BACK, BACK_REDUCING, INPUTS, WEIGHTS, WEIGHTS_REDUCING = range(6)
"""Sorts of passes."""
SORTS = 6

SPLITTING, CUT, STAGES, PIECES_EACH = (int(Column[name]) for name in ("SPLITTING", "CUT", "STAGES", "PIECES_EACH"))
MICRO_BATCHES, ZERO = int(Column.MICRO_BATCHES), int(Column.ZERO)
RULE, WRITTEN_AT = int(Column.RULE), int(Column.WRITTEN)
REPLICAS, EXPERT_COPIES, LAYOUT = int(Column.REPLICAS), int(Column.EXPERT_COPIES), int(Column.LAYOUT)
AGAIN = int(Column.AGAIN)
ELEMENT_BYTES, GRADIENT_BYTES = int(Setting.ELEMENT_BYTES), int(Setting.GRADIENT_BYTES)
BUCKET_BYTES, REGATHER, FREE = int(Setting.BUCKET_BYTES), int(Setting.REGATHER), int(Setting.FREE)
FORWARD_S, BACKWARD_S, INPUT_S, WEIGHT_S, AGAIN_S = (
    Seconds.FORWARD, Seconds.BACKWARD, Seconds.INPUT, Seconds.WEIGHT, Seconds.AGAIN,
)  # fmt: skip
DENSE, EXPERTS, TIED, EMBEDDING = Held.DENSE, Held.EXPERT, Held.TIED, Held.EMBEDDING
FROZEN, FROZEN_EXPERT, FROZEN_TIED = Held.FROZEN, Held.FROZEN_EXPERT, Held.FROZEN_TIED
BLOCK = Held.BLOCK
FORWARD_PASS, BACKWARD_PASS, AGAIN_PASS, INPUT_PASS = (
    PassColumn.FORWARD,
    PassColumn.BACKWARD,
    PassColumn.AGAIN,
    PassColumn.INPUT,
)
BESIDE_S, HIDDEN_BYTES, HIDDEN_TIMES, ON_CHANNEL, ON_OTHER = (
    Hidden.SECONDS, Hidden.BYTES, Hidden.TIMES, Hidden.CHANNEL, Hidden.OTHER,
)  # fmt: skip
GPU, HOST, AWAY = LaunchColumn.GPU, LaunchColumn.HOST, LaunchColumn.AWAY
LAUNCHED_FORWARD, LAUNCHED_BACKWARD, LAUNCHED_AGAIN = LaunchColumn.FORWARD, LaunchColumn.BACKWARD, LaunchColumn.AGAIN
OF_A_PASS, WAITS = LaunchColumn.EACH, LaunchColumn.WAITS
HOST_OVERLAP = 3.0
"""How work of GPU and host is put together, as in `device.work`."""


class LayerArrays(NamedTuple):
    """The layer table and the cuts, as kernels read them."""

    seconds: Floats
    launch: Floats
    held: Floats
    met: Floats
    hidden: Floats
    cuts: Ints
    again: Ints


class PassLegs(NamedTuple):
    """Legs of every sort of pass of every piece: those of (sort, piece) stand from `start` to `end`."""

    start: Ints
    end: Ints
    alone: Floats
    """Seconds of one copy."""
    later: Floats
    """By how much the last copy may be over later."""
    layer: Ints
    """Whose weights are gathered, otherwise -1."""
    gather: Floats
    """Bytes of weights to gather before it: of all layers, of experts."""
    reduce: Floats
    """Bytes of gradients to reduce after it, likewise."""
    times: Floats
    """In how many collectives."""


@kernel
def written_down(
    one: Ints, model: LayerArrays, written: WrittenRows, costs: Floats, settings: Floats, updates: Floats
) -> tuple[Ints, Floats, PassLegs, Floats]:
    """The stage of every piece, the pace of every stage, all legs, and bytes met for inside layers."""
    stages, pieces = one[STAGES], one[STAGES] * one[PIECES_EACH]
    homes, whole = np.zeros(pieces, np.int64), np.full(pieces, one[MICRO_BATCHES])
    for piece in range(pieces):
        homes[piece] = home_of(one, written, piece)
        if one[RULE] == WRITTEN:
            whole[piece] = written.whole[written.home_start[one[WRITTEN_AT]] + piece]
    paces, beside = np.zeros(stages), one[RULE] == WRITTEN and bool(written.side_by_side[one[WRITTEN_AT]])
    for stage in range(stages):
        # Where the model may be cut anywhere, how far a host slows its stage down is not known.
        free = settings[FREE] > 0 and stages > 1
        if free:
            paces[stage] = 1.0
        else:
            paces[stage] = pace_of(one, model, homes, stage, updates[stage, 0], updates[stage, 1], beside)
    legs = empty_legs(pieces, model.held.shape[1])
    used = np.zeros((stages, CHANNELS))
    if beside:
        # What one pass exchanges the other may hide: computations alone take their time, one after the other.
        costs = np.zeros((one[LAYOUT] + stages, costs.shape[1], costs.shape[2]))
    write_legs(one, model, settings, costs, homes, paces, whole, legs, used)
    return homes, paces, legs, used


@kernel
def empty_legs(pieces: int, layers: int) -> PassLegs:
    """Room for the legs of all passes."""
    most = SORTS * (layers + 2 * pieces)
    places = SORTS * pieces
    return PassLegs(
        np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(most), np.zeros(most),
        np.full(most, -1), np.zeros((most, 2)), np.zeros((most, 2)), np.ones((most, 2)),
    )  # fmt: skip


@kernel
def pace_of(
    one: Ints, model: LayerArrays, homes: Ints, stage: int, update_gpu: float, update_host: float, beside: bool
) -> float:
    """By what factor a stage is slowed down because its host cannot launch any faster (`task.lower.paced`).

    `beside` says that passes run side by side.
    """
    forth, back, waits = np.zeros(OF_A_PASS), np.zeros(OF_A_PASS), False
    pieces, layers = one[STAGES] * one[PIECES_EACH], model.held.shape[1]
    for piece in range(pieces):
        if homes[piece] != stage:
            continue
        first = model.cuts[one[CUT] + piece]
        end = model.cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
        seen = int(np.int64(0))
        for layer in range(first, end):
            kind = kind_of(one, model.again[one[AGAIN] + piece], model.held[one[SPLITTING], layer], seen)
            seen += int(model.held[one[SPLITTING], layer, BLOCK])
            row = model.launch[one[SPLITTING], layer]
            again = LAUNCHED_AGAIN + OF_A_PASS * kind
            for part in range(OF_A_PASS):
                forth[part] += row[LAUNCHED_FORWARD + part]
                back[part] += row[LAUNCHED_BACKWARD + part] + row[again + part]
            waits = waits or row[WAITS] > 0
    for part in range(OF_A_PASS):
        forth[part] *= one[MICRO_BATCHES]
        back[part] *= one[MICRO_BATCHES]
    back[GPU] += update_gpu
    back[HOST] += update_host
    gpu = forth[GPU] + back[GPU]
    if gpu == 0.0:
        return 1.0
    if beside:
        return float(_stretched(gpu, forth[HOST] + back[HOST], 0.0) / gpu)
    if waits:
        return float(
            (_stretched(forth[GPU], forth[HOST], forth[AWAY]) + _stretched(back[GPU], back[HOST], back[AWAY])) / gpu
        )
    return float(_stretched(gpu, forth[HOST] + back[HOST], forth[AWAY] + back[AWAY]) / gpu)


@kernel
def _stretched(gpu: float, host: float, away: float) -> float:
    """Seconds of work whose host goes on while the GPU computes nothing for a time."""
    longest = max(gpu + away, host)
    if longest == 0.0:
        return 0.0
    shares = ((gpu + away) / longest) ** HOST_OVERLAP + (host / longest) ** HOST_OVERLAP
    return float(longest * shares ** (1 / HOST_OVERLAP) - away)


@kernel
def write_legs(
    one: Ints, model: LayerArrays, settings: Floats, costs: Floats, homes: Ints, paces: Floats, whole: Ints,
    legs: PassLegs, used: Floats,
) -> None:  # fmt: skip
    """Write the legs of all pieces, of which `whole` backward passes do not put gradients of weights off.

    `used` counts bytes by stage and channel.
    """
    legs = point_at(legs)
    pieces, layers = one[STAGES] * one[PIECES_EACH], model.held.shape[1]
    at = int(np.int64(0))  # a bare 0 is of another type at first: `_write_pass` would be compiled twice
    sums = np.zeros((IN_LAYERS, 2))
    for piece in range(pieces):
        first = model.cuts[one[CUT] + piece]
        end = model.cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
        stage = homes[piece]
        dense = _dense(one, model, homes, stage, first, end)
        for sort in range(SORTS):
            place = sort * pieces + piece
            many = _passes(sort, one[MICRO_BATCHES], whole[piece])
            if many == 0:
                continue
            legs.start[place] = at
            at = _write_pass(
                one, model, settings, costs[one[LAYOUT] + stage], paces[stage], sort, piece, end, dense, legs, at, sums,
                # Passes that reduce stand beside plain ones of the same layers: bytes of the step are counted once.
                used[stage], many if sort < WEIGHTS and sort != BACK_REDUCING else 0,
            )  # fmt: skip
            legs.end[place] = at


@kernel
def _passes(sort: int, micro_batches: int, whole: int) -> int:
    """How many passes of a piece may be of a sort."""
    if sort == AHEAD:
        return micro_batches
    return whole if sort in (BACK, BACK_REDUCING) else micro_batches - whole


@kernel
def _dense(one: Ints, model: LayerArrays, homes: Ints, stage: int, first: int, end: int) -> Floats:
    """Parameters of each layer of a piece that all data ranks hold, with the copy of an embedding held elsewhere.

    In two rows: those that are trained, those that are not.
    """
    held = model.held[one[SPLITTING]]
    pieces, layers, here = one[STAGES] * one[PIECES_EACH], len(held), False
    for piece in range(pieces):
        if homes[piece] == stage:
            stop = model.cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
            for layer in range(model.cuts[one[CUT] + piece], stop):
                here = here or held[layer, EMBEDDING] > 0
    found = np.empty((2, end - first))
    for layer in range(first, end):
        found[0, layer - first] = held[layer, DENSE] + (0.0 if here else held[layer, TIED])
        found[1, layer - first] = held[layer, FROZEN] + (0.0 if here else held[layer, FROZEN_TIED])
    return found


@kernel
def _write_pass(
    one: Ints, model: LayerArrays, settings: Floats, costs: Floats, pace: float, sort: int, piece: int, end: int,
    dense: Floats, legs: PassLegs, at: int, sums: Floats, used: Floats, many: int,
) -> int:  # fmt: skip
    """The legs of one pass of one piece; gives back where the next pass is written."""
    split, zero, first, again = one[SPLITTING], one[ZERO], model.cuts[one[CUT] + piece], model.again[one[AGAIN] + piece]
    replicas, copies = one[REPLICAS], one[EXPERT_COPIES]
    gathers = zero >= 3 and (sort == AHEAD or (settings[REGATHER] > 0 and (sort < WEIGHTS)))
    reduces = sort in (BACK_REDUCING, WEIGHTS_REDUCING)
    lowest_dense, lowest_expert = -1, -1
    if reduces:
        for layer in range(end - 1, first - 1, -1):
            if replicas > 1 and dense[0, layer - first] > 0:
                lowest_dense = layer
            if copies > 1 and model.held[split, layer, EXPERTS] > 0:
                lowest_expert = layer
    full_dense, full_expert, computed, exposed, moves = 0.0, 0.0, 0.0, 0.0, False
    seen = 0
    if sort != AHEAD:
        for layer in range(first, end):
            seen += int(model.held[split, layer, BLOCK])
    sums[:] = 0.0
    for step in range(end - first):
        layer = first + step if sort == AHEAD else end - 1 - step
        weights_dense = dense[0, layer - first] if replicas > 1 else 0.0
        weights_expert = model.held[split, layer, EXPERTS] if copies > 1 else 0.0
        whole_dense = weights_dense + (dense[1, layer - first] if replicas > 1 else 0.0)
        whole_expert = weights_expert + (model.held[split, layer, FROZEN_EXPERT] if copies > 1 else 0.0)
        gathered = gathers and (whole_dense > 0 or whole_expert > 0)
        if gathered and moves:
            at = _close(legs, at, computed * pace + exposed, sums, costs)
            computed, exposed, moves = 0.0, 0.0, False
        behind = seen if sort == AHEAD else seen - int(model.held[split, layer, BLOCK])
        kind = kind_of(one, again, model.held[split, layer], behind)
        seen += int(model.held[split, layer, BLOCK]) if sort == AHEAD else -int(model.held[split, layer, BLOCK])
        seconds = _layer(model, split, layer, sort, kind, sums, used, many)
        computed += seconds
        exposed += _not_hidden(model.hidden[split, layer], sort, kind, costs, pace, used, many)
        moves = moves or sort < WEIGHTS or seconds > 0  # a layer without gradients of weights has no such pass
        by_dense, by_expert = False, False
        if reduces:
            full_dense += weights_dense * settings[GRADIENT_BYTES]
            full_expert += weights_expert * settings[GRADIENT_BYTES]
            by_dense = weights_dense > 0 and (
                full_dense >= settings[BUCKET_BYTES] or zero >= 3 or layer == lowest_dense
            )
            by_expert = weights_expert > 0 and (
                full_expert >= settings[BUCKET_BYTES] or zero >= 3 or layer == lowest_expert
            )
        if gathered or by_dense or by_expert:
            if gathered:
                legs.layer[at] = layer
                legs.gather[at, 0] = whole_dense * settings[ELEMENT_BYTES]
                legs.gather[at, 1] = whole_expert * settings[ELEMENT_BYTES]
            if by_dense:
                legs.reduce[at, 0], legs.times[at, 0] = full_dense, _times(full_dense, settings[BUCKET_BYTES])
                full_dense = 0.0
            if by_expert:
                legs.reduce[at, 1], legs.times[at, 1] = full_expert, _times(full_expert, settings[BUCKET_BYTES])
                full_expert = 0.0
            at = _close(legs, at, computed * pace + exposed, sums, costs)
            computed, exposed, moves = 0.0, 0.0, False
    return _close(legs, at, computed * pace + exposed, sums, costs) if moves else at


@kernel
def _times(full: float, bucket: float) -> float:
    return max(1.0, float(np.rint(full / bucket))) if bucket > 0 else 1.0


@kernel
def _layer(
    model: LayerArrays, split: int, layer: int, sort: int, kind: int, sums: Floats, used: Floats, many: int
) -> float:
    """Seconds of one layer in a pass; bytes that it meets for are added to `sums`, those of many passes to `used`."""
    row = model.seconds[split, layer]
    if sort == AHEAD:
        _meet(model.met[split, layer, FORWARD_PASS], sums, used, many)
        return float(row[FORWARD_S])
    if sort >= WEIGHTS:
        return float(row[WEIGHT_S])
    _meet(model.met[split, layer, BACKWARD_PASS], sums, used, many)
    _meet(model.met[split, layer, AGAIN_PASS + kind], sums, used, many)
    return float(row[AGAIN_S + kind] + (row[INPUT_S] if sort == INPUTS else row[BACKWARD_S]))


@kernel
def _meet(met: Floats, sums: Floats, used: Floats, many: int) -> None:
    for channel in range(IN_LAYERS):
        sums[channel, 0] += met[channel, 0]
        sums[channel, 1] += met[channel, 1]
        used[channel] += met[channel, 0] * many


@kernel
def _not_hidden(
    hidden: Floats, sort: int, kind: int, costs: Floats, pace: float, used: Floats, many: int
) -> float:  # fmt: skip
    """Seconds by which what one layer exchanges in a pass is longer than the computation beside it."""
    if hidden.shape[1] == 0 or sort >= WEIGHTS:
        return 0.0
    if sort == AHEAD:
        return float(_exposed(hidden[FORWARD_PASS], costs, pace, used, many))
    back = _exposed(hidden[INPUT_PASS if sort == INPUTS else BACKWARD_PASS], costs, pace, used, many)
    return float(back + _exposed(hidden[AGAIN_PASS + kind], costs, pace, used, many))


@kernel
def _exposed(hidden: Floats, costs: Floats, pace: float, used: Floats, many: int) -> float:
    """The same of one pass. Copies may hide at different times: how much later the last one is over is not counted."""
    seconds = 0.0
    for at in range(len(hidden)):
        if hidden[at, HIDDEN_TIMES] == 0.0:
            break
        longest = 0.0
        for column in (ON_CHANNEL, ON_OTHER):
            channel = int(hidden[at, column])
            if channel >= 0:
                used[channel] += hidden[at, HIDDEN_BYTES] * many
                alone = hidden[at, HIDDEN_TIMES] * costs[channel, 0] + hidden[at, HIDDEN_BYTES] * costs[channel, 1]
                longest = max(longest, alone)
        seconds += max(0.0, longest - pace * hidden[at, BESIDE_S])
    return seconds


@kernel
def _close(legs: PassLegs, at: int, computed: float, sums: Floats, costs: Floats) -> int:
    """End a leg with what was computed and met; gives back where the next one is written."""
    alone, later = computed, 0.0
    for channel in range(IN_LAYERS):
        if sums[channel, 1] > 0:
            alone += sums[channel, 1] * costs[channel, 0] + sums[channel, 0] * costs[channel, 1]
            later = max(later, sums[channel, 0] * (costs[channel, 2] - costs[channel, 1]))
    sums[:] = 0.0
    legs.alone[at], legs.later[at] = alone, later
    return at + 1
