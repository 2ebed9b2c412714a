"""A floor under the step of a candidate without replaying it: fill, work and drain of every stage, and busy links.

It never exceeds the replay, and costs a fraction of it: only candidates whose floor is low need to be replayed. Legs,
and what of their exchanges hides behind computations, are those of the replay.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.planner._legs_kernel import (
    AHEAD,
    BACK,
    BACK_REDUCING,
    FREE,
    INPUTS,
    WEIGHTS,
    WEIGHTS_REDUCING,
    LayerArrays,
    PassLegs,
    written_down,
)  # fmt: skip
from ropewalk.planner._replay_kernel import (
    CONTEXT,
    GATHER,
    LAYOUT,
    MICRO_BATCHES,
    REDUCE,
    SCATTER,
    SCATTER_GATHER,
    SEND_BACK,
    SEND_ON,
    SEQUENCE,
    STAGES,
    TENSOR,
    TENSOR_GATHER,
    ZERO,
    ReplayCosts,
    busiest,
    cost_of,
    crossing,
)  # fmt: skip
from ropewalk.planner.written import WrittenRows
from ropewalk.pointer import point_at


@kernel
def floor_of_all(
    candidates: Ints, chosen: Ints, model: LayerArrays, written: WrittenRows, network: ReplayCosts, settings: Floats,
    updates: Floats, found: Floats,
) -> None:  # fmt: skip
    """Seconds that a step of each of the chosen candidates takes at least.

    Where the model may be cut anywhere (`FREE`) these are seconds of candidates with one stage; of others they are the
    work of one micro-batch on all stages, launched in no time.
    """
    model, written, network = point_at(model), point_at(written), point_at(network)
    for at in chosen:
        found[at] = _floor(candidates[at], model, written, network, settings, updates[at])


@kernel
def _floor(
    one: Ints, model: LayerArrays, written: WrittenRows, network: ReplayCosts, settings: Floats, updates: Floats
) -> float:
    """The floor of one candidate: its stages at the pace of their hosts."""
    homes, paces, legs, used = written_down(one, model, written, network.costs, settings, updates)
    return float(_floor_of(one, model, network, settings, updates, homes, paces, legs, used))


@kernel
def _floor_of(
    one: Ints, model: LayerArrays, network: ReplayCosts, settings: Floats, updates: Floats, homes: Ints, paces: Floats,
    legs: PassLegs, used: Floats,
) -> float:  # fmt: skip
    legs = point_at(legs)
    stages, pieces, many = one[STAGES], len(homes), one[MICRO_BATCHES]
    work, fill, drain = np.zeros(stages), np.full(stages, np.inf), np.zeros(stages)
    head, tail, plain = 0.0, 0.0, True
    for piece in range(pieces):
        stage = homes[piece]
        if piece > 0 and homes[piece - 1] != stage:
            head += _handed(one, model, settings, network, homes, piece - 1, piece, used, work)
            tail += _handed(one, model, settings, network, homes, piece, piece - 1, used, work)
        if piece < stages:
            fill[stage], drain[stage] = min(fill[stage], head), tail
        ahead = _seconds(legs, AHEAD * pieces + piece)
        split = legs.end[BACK_REDUCING * pieces + piece] == legs.start[BACK_REDUCING * pieces + piece]
        plain = plain and legs.end[INPUTS * pieces + piece] == legs.start[INPUTS * pieces + piece]
        back = _seconds(legs, (INPUTS if split else BACK) * pieces + piece)
        late = _seconds(legs, WEIGHTS * pieces + piece) if split else 0.0
        work[stage] += many * (ahead + back + late)
        head, tail = head + ahead, tail + back
        _count(one, legs, (WEIGHTS_REDUCING if split else BACK_REDUCING) * pieces + piece, piece, pieces, used[stage])
    if settings[FREE] > 0:
        # One stage cannot be cut. Of several the work of a micro-batch is what counts: others spread it.
        return float(work[0] + paces[0] * updates[0, 0] if stages == 1 else _total(work) / many)
    least, ending = busiest(one, network, used), 0.0
    for stage in range(stages):
        own = _ending(one, network, legs, paces, updates, homes, pieces, stage)
        if stage == 0:
            ending = own
        # The last backward pass of a stage goes on through all stages in front of it; put-off gradients do not.
        after = max(own, drain[stage] + ending) if plain else own
        least = max(least, fill[stage] + work[stage] + after)
    return float(least)


@kernel
def _total(work: Floats) -> float:
    total = 0.0
    for stage in range(len(work)):
        total += work[stage]
    return total


@kernel
def _seconds(legs: PassLegs, place: int) -> float:
    total = 0.0
    for leg in range(legs.start[place], legs.end[place]):
        total += legs.alone[leg]
    return total


@kernel
def _handed(
    one: Ints, model: LayerArrays, settings: Floats, network: ReplayCosts, homes: Ints, giver: int, taker: int,
    used: Floats, work: Floats,
) -> float:  # fmt: skip
    """Seconds in which a micro-batch gets from one piece to the other; gathering it is work of the taker."""
    source, target, many = homes[giver], homes[taker], one[MICRO_BATCHES]
    size = crossing(one, model, settings, min(giver, taker)) / one[CONTEXT]
    parts = one[TENSOR] > 1 and (one[SEQUENCE] or settings[SCATTER_GATHER] > 0)
    sent = size / one[TENSOR] if parts else size
    channel = SEND_ON if target == (source + 1) % one[STAGES] else SEND_BACK
    seconds, _ = cost_of(network.costs[one[LAYOUT] + source, channel], sent, 1.0)
    used[source, channel] += many * sent
    if parts and not one[SEQUENCE]:
        gathered, _ = cost_of(network.costs[one[LAYOUT] + target, TENSOR_GATHER], size, 1.0)
        used[target, TENSOR_GATHER] += many * size
        work[target] += many * gathered
    return float(seconds)


@kernel
def _count(one: Ints, legs: PassLegs, place: int, piece: int, pieces: int, used: Floats) -> None:
    """Count gradients that are reduced and weights that are gathered at least."""
    times = one[MICRO_BATCHES] if one[ZERO] >= 2 else 1
    for leg in range(legs.start[place], legs.end[place]):
        for sort in range(2):
            used[SCATTER[sort] if one[ZERO] else REDUCE[sort]] += times * legs.reduce[leg, sort]
    if one[ZERO] < 3:
        return
    for sort in range(2):
        for passes in (AHEAD, BACK, INPUTS):
            whole, largest = 0.0, 0.0
            for leg in range(legs.start[passes * pieces + piece], legs.end[passes * pieces + piece]):
                whole += legs.gather[leg, sort]
                largest = max(largest, legs.gather[leg, sort])
            # A layer at which a pass turns round is not gathered again.
            used[GATHER[sort]] += one[MICRO_BATCHES] * (whole - largest)


@kernel
def _ending(
    one: Ints,
    network: ReplayCosts,
    legs: PassLegs,
    paces: Floats,
    updates: Floats,
    homes: Ints,
    pieces: int,
    stage: int,
) -> float:
    """Seconds from the last backward pass of a stage to its end: its last gradients, the update."""
    seconds = 0.0
    costs = network.costs[one[LAYOUT] + stage]
    for sort in (BACK_REDUCING, WEIGHTS_REDUCING):
        place = sort * pieces + stage  # the piece with which a stage ends is its first one
        last = legs.end[place] - 1
        if last >= legs.start[place] and homes[stage] == stage:
            for kind in range(2):
                if legs.reduce[last, kind] > 0:
                    channel = SCATTER[kind] if one[ZERO] else REDUCE[kind]
                    reduced, _ = cost_of(costs[channel], legs.reduce[last, kind], legs.times[last, kind])
                    seconds = max(seconds, reduced)
    return float(seconds + paces[stage] * updates[stage, 0])
