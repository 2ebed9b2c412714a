"""Every strategy that a space allows for a model on so many GPUs, memory aside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import PlanError
from ropewalk.planner.layers import repeating
from ropewalk.planner.space import COLUMNS, EXCHANGE_NAMES, Candidates, Numbers, Space
from ropewalk.strategy.checks import MOST_MICRO_BATCHES, degree_findings
from ropewalk.strategy.strategy import Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.operator import GATHER, RING
from ropewalk.workload.workload import Workload

LONG = 16_384
"""Tokens of a sample from which all exchanges of context ranks are searched, unless they are given: what shorter ones
gather takes little of a step."""
LEAST_TOKENS = 4096
"""Tokens of a sample that each context rank keeps at least, unless context degrees are given."""


def enumerate_space(space: Space, workload: Workload, gpus: int, batch: int) -> Candidates:
    """Every strategy of the space that the model, the GPUs and the batch allow, memory aside."""
    rows: list[Ints] = []
    blocks = sum(repeating(workload))
    micro_batches = space.micro_batch or fixed_micro_batch(workload)
    for tensor, context, pipeline, expert, sequence, met in _degrees(space, workload, gpus):
        data = gpus // (tensor * context * pipeline)
        if batch % data:
            continue
        for micro_batch in _divisors(micro_batches, batch // data):
            many = batch // data // micro_batch
            if many <= MOST_MICRO_BATCHES:
                degrees = (data, tensor, pipeline, expert, context, sequence)
                rows += _rows(space, workload, degrees, met, micro_batch, many, blocks)
    table = np.concatenate(rows) if rows else np.zeros((0, len(COLUMNS)), np.int64)
    return Candidates(space, table)


def fixed_micro_batch(workload: Workload) -> Numbers:
    """The only micro-batch of a model that was written down for one; nothing where any will do."""
    return () if workload.resize is not None else (workload.batch,)


ZERO_BESIDE = 1
"""Of passes side by side, each would gather weights and reduce gradients of its own: no more is shared out."""


def _rows(
    space: Space, workload: Workload, degrees: Numbers, met: tuple[int, int], micro_batch: int, many: int, blocks: int
) -> Iterator[Ints]:
    """Candidates of these degrees whose ranks meet like this: every schedule, ZeRO stage and recomputation."""
    data, tensor, pipeline, expert, context, _ = degrees
    together = max(data * context, data * context * (tensor if met[1] else 1) // expert)
    # Weights with narrow copies alone are not gathered for each pass, which sends wide ones.
    most = 2 if space.usual.narrow_weights else 3
    shared = [zero for zero in space.zero if zero == 0 or (together > 1 and zero <= most)]
    timetables = list(_timetables(space, pipeline, many, len(workload.layers), blocks))
    beside = {at for at, name in enumerate(space.schedules) if TIMETABLES[name].side_by_side}
    ring = EXCHANGE_NAMES[met[0]] == RING
    again = [at for at, name in enumerate(space.recompute) if not (ring and name == "selective")]
    found = [
        (*degrees, zero, recompute, 0, micro_batch, many, schedule, each, *met)
        for zero, recompute, (schedule, each) in product(shared, again, timetables)
        if schedule not in beside or (expert > 1 and zero <= ZERO_BESIDE)
    ]
    if found:
        yield np.array(found, np.int64)


def _timetables(space: Space, pipeline: int, many: int, layers: int, blocks: int) -> Iterator[tuple[int, int]]:
    """Schedules by number with the pieces of each stage; one stage has nothing to order."""
    plain = [number for number, name in enumerate(space.schedules) if not TIMETABLES[name].side_by_side]
    for number, name in enumerate(space.schedules):
        named = TIMETABLES[name]
        if pipeline == 1:
            if number in plain[:1]:
                yield number, 1
        elif named.any_pieces:
            most = layers // pipeline
            even = [each for each in range(2, most + 1) if blocks % (pipeline * each) == 0]
            for each in space.interleave or even:
                if 2 <= each <= most and many % pipeline == 0:
                    yield number, each
        elif pipeline * named.pieces_each <= layers:
            yield number, named.pieces_each


def _degrees(
    space: Space, workload: Workload, gpus: int
) -> Iterator[tuple[int, int, int, int, int, tuple[int, int]]]:  # fmt: skip
    """Tensor, context, pipeline, expert degree and sequence parallelism that fit the model and the GPUs.

    Behind them by number how context ranks meet, and whether experts are folded.
    """
    layers = len(workload.layers)
    # Of layers that are alike, one is enough to see what divides.
    alike = {layer.operators: layer for layer in workload.layers}
    some = replace(workload, layers=tuple(replace(layer, inputs=()) for layer in alike.values()))
    # Skip connections only add to what a piece waits for, so what is said about sends between neighbours is a bound.
    row = all(at - 1 in layer.inputs for at, layer in enumerate(workload.layers) if at)
    searched = space.exchange or (EXCHANGE_NAMES if workload.sequence >= LONG else (GATHER,))
    inside = [one for one in _divisors(space.tensor, gpus) if space.tensor or space.server % one == 0]
    contexts = [one for one in _divisors(space.context, gpus) if space.context or _roomy(one, workload.sequence)]
    for tensor, context in product(inside, contexts):
        if gpus % (tensor * context):
            continue
        split = Strategy(tensor=tensor, context=context)
        exchanges = [
            EXCHANGE_NAMES.index(name) for name in (searched if context > 1 else (GATHER,))
            if _fits(some, replace(split, context_exchange=name))
        ]  # fmt: skip
        rest = gpus // (tensor * context)
        for pipeline in _divisors(space.pipeline, rest) if exchanges else ():
            if pipeline > layers or (pipeline > 1 and not row):
                continue
            for expert, sequence, folded in _spread(space, some, split, rest // pipeline):
                for exchange in exchanges:
                    yield tensor, context, pipeline, expert, int(sequence), (exchange, int(folded))


def _spread(space: Space, workload: Workload, split: Strategy, data: int) -> Iterator[tuple[int, bool, bool]]:
    """Expert degrees, with sequence parallelism or without, folded or not."""
    together = split.tensor * split.context
    kinds = dict.fromkeys(folded and together > 1 for folded in space.fold)
    for folded in kinds:
        for expert in _divisors(space.expert, data * together if folded else data):
            if folded and expert == 1 and False in kinds:
                continue  # nothing is spread, folded or not
            for sequence in space.sequence:
                if sequence and split.tensor == 1:
                    continue
                plan = replace(split, data=data if folded else expert, expert=expert, sequence_parallel=sequence)
                plan = replace(plan, fold_experts=folded and expert > 1)
                if (expert == 1 and not sequence) or _fits(workload, plan):
                    yield expert, sequence, folded and expert > 1


def _fits(workload: Workload, plan: Strategy) -> bool:
    """Does what ranks share divide over them? The rules are those of every strategy."""
    return not any(True for _ in degree_findings(plan, workload))


def _roomy(context: int, sequence: int) -> bool:
    return context == 1 or sequence >= context * LEAST_TOKENS


def _divisors(given: Numbers, of: int) -> list[int]:
    """The numbers that divide `of`, of those that are given or of all."""
    if given:
        return [one for one in given if of % one == 0]
    small = [one for one in range(1, math.isqrt(of) + 1) if of % one == 0]
    return small + [of // one for one in reversed(small) if one * one != of]


RESTRICTING = {
    "tensor": "--tp", "pipeline": "--pp", "context": "--cp", "expert": "--ep", "micro_batch": "--micro-batch",
    "interleave": "--interleave",
}  # fmt: skip
"""What may be given in numbers, and the option that gives it."""


def check_space(candidates: Candidates, workload: Workload, gpus: int, batch: int) -> None:
    """Refuse an empty space with a remedy that has been tried: another batch, or another choice."""
    if len(candidates):
        return
    space, fixed = candidates.space, fixed_micro_batch(workload)
    wanted = gpus * (*fixed, *sorted(space.micro_batch), 1)[0]
    if batch % wanted and len(enumerate_space(space, workload, gpus, wanted)):
        why = f" into micro-batches of {fixed[0]}, for which it was written" if fixed else ""
        raise PlanError(
            f"no split of {workload.name} over {gpus} GPUs divides a batch of {batch}{why}: give a batch that is a "
            f"multiple of {wanted}"
        )
    given = [name for name in RESTRICTING if getattr(space, name)]
    remedies = []
    for name in given:
        freed = enumerate_space(_without(space, [name]), workload, gpus, batch)
        if len(freed):
            remedies.append(f"{RESTRICTING[name]} {','.join(map(str, np.unique(freed.column(name)).tolist()))}")
    said = ", ".join(f"{RESTRICTING[name]} {','.join(map(str, getattr(space, name)))}" for name in given)
    freed = enumerate_space(_without(space, given), workload, gpus, batch)
    if remedies:
        remedy = f"give {' or '.join(remedies)}"
    elif len(freed):
        remedy = "leave them out"
    else:
        remedy = "allow more schedules, recomputation or ZeRO stages, or another number of GPUs"
    raise PlanError(
        f"no strategy of {workload.name} on {gpus} GPUs with a batch of {batch}"
        f"{f' has {said}' if said else ' is among those that may be chosen'}: {remedy}"
    )


def _without(space: Space, given: Sequence[str]) -> Space:
    """The space when these columns are not restricted."""
    free: dict[str, Any] = dict.fromkeys(given, ())
    return replace(space, **free)
