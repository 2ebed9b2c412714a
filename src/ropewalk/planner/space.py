"""What can be chosen: every strategy of a uniform space for a model on so many GPUs, as columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, PlanError
from ropewalk.planner.layers import Splitting, repeating
from ropewalk.planner.layout import Layout
from ropewalk.strategy.checks import MOST_MICRO_BATCHES, degree_findings
from ropewalk.strategy.context import EXCHANGES
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS
from ropewalk.strategy.strategy import LayerChoice, Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.operator import GATHER, RING
from ropewalk.workload.workload import Workload

Ints = NDArray[np.int64]
Numbers = tuple[int, ...]


BLOCKS = "blocks"
"""Recompute as many blocks at the head of every piece as it takes to fit into memory, in full, and nothing else."""
USUAL_SCHEDULES = tuple(name for name, one in TIMETABLES.items() if one.searched and one.copies == 1 and not one.fitted)
"""Timetables that follow from the numbers of stages and micro-batches alone and keep one copy of the model."""
LONG = 16_384
"""Tokens of a sample from which all exchanges of context ranks are searched, unless they are given: what shorter ones
gather takes little of a step."""
EXCHANGE_NAMES = tuple(EXCHANGES)
"""What the numbers in the column `exchange` stand for."""
LEAST_TOKENS = 4096
"""Tokens of a sample that each context rank keeps at least, unless context degrees are given."""


@dataclass(frozen=True)
class Space:
    """What a search may choose from; where no numbers are given, all that divide evenly and people would run.

    Those are tensor degrees within a server, context ranks with 4,096 tokens or more, and interleaved pipelines
    whose pieces have equal numbers of the layers that repeat.
    """

    server: int = 8
    """GPUs of a server, which tensor parallelism stays inside of unless its degrees are given."""
    tensor: Numbers = ()
    pipeline: Numbers = ()
    context: Numbers = ()
    expert: Numbers = ()
    micro_batch: Numbers = ()
    interleave: Numbers = ()
    sequence: tuple[bool, ...] = (False, True)
    exchange: tuple[str, ...] = ()
    """How context ranks meet in attention; unless given all of `EXCHANGES` for long sequences, a gather for others."""
    fold: tuple[bool, ...] = (False, True)
    """Are experts that are spread over ranks spread over tensor and context ranks too?"""
    zero: Numbers = (0, 1, 2, 3)
    recompute: tuple[str, ...] = (*RECOMPUTE_OF_LAYERS, BLOCKS)
    schedules: tuple[str, ...] = USUAL_SCHEDULES
    order: str = DEFAULT_ORDER
    usual: Strategy = field(default_factory=Strategy)
    """Everything that is not searched: the optimiser, bytes of gradients, bucket size."""

    def check(self) -> None:
        """Refuse what does not exist, all of it at once."""
        findings = Findings(PlanError, "what may be chosen")
        for name in self.schedules:
            if name not in TIMETABLES:
                findings.add(TIMETABLES.unknown(name))
            elif TIMETABLES[name].copies > 1:
                findings.add(f"schedule {name} keeps two copies of the model: try it with `ropewalk simulate`")
            elif not TIMETABLES[name].searched:
                # A replay runs the passes of a stage one after the other: its time would be no bound.
                findings.add(
                    f"schedule {name} runs passes side by side, which is not searched: leave it out, or try it with "
                    f"`ropewalk simulate --schedule {name}`"
                )
        kinds = (*RECOMPUTE_OF_LAYERS, BLOCKS)
        for what, given, known in (("recompute", self.recompute, kinds), ("zero", self.zero, (0, 1, 2, 3))):
            strangers = [str(one) for one in given if one not in known]
            if strangers or not given:
                findings.add(f"{what} {', '.join(strangers) or 'is empty'}: use some of {', '.join(map(str, known))}")
        if self.usual.narrow_weights and set(self.zero) == {3}:
            findings.add("zero 3 gathers weights wide: give some of 0, 1 and 2, or leave --fp8-params out")
        for name in self.exchange:
            if name not in EXCHANGES:
                findings.add(EXCHANGES.unknown(name))
        if not self.schedules:
            findings.add("no schedule is given: name one, such as 1f1b")
        findings.raise_if_any()


COLUMNS = (
    "data", "tensor", "pipeline", "expert", "context", "sequence", "zero", "recompute", "again", "micro_batch",
    "micro_batches", "schedule", "interleave", "exchange", "folded",
)  # fmt: skip
"""Names of the columns of `Candidates.table`; `again`: blocks recomputed in full at the head of every piece."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Strategies as rows of whole numbers; recomputation and schedules are numbered as the space lists them."""

    space: Space
    table: Ints

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> Ints:
        return self.table[:, COLUMNS.index(name)]

    def only(self, chosen: NDArray[np.bool_] | Ints) -> Candidates:
        return replace(self, table=self.table[chosen])

    def recomputing(self, again: Ints) -> Candidates:
        """The same with so many blocks recomputed at the head of every piece."""
        table = self.table.copy()
        table[:, COLUMNS.index("again")] = again
        return replace(self, table=table)

    @property
    def by_block(self) -> NDArray[np.bool_]:
        """Which of them recompute block by block."""
        return np.array([name == BLOCKS for name in self.space.recompute], np.bool_)[self.column("recompute")]

    @property
    def may_recompute(self) -> bool:
        """May blocks be recomputed one by one?"""
        return BLOCKS in self.space.recompute

    def place(self, strategy: Strategy) -> int | None:
        """Where a strategy stands, whatever its cut and its recomputed blocks; None where it does not."""
        meanwhile = self.space.usual.shared_overlap and strategy.expert > 1
        if strategy.parts or strategy.rows or strategy.shared_overlap != meanwhile:
            return None
        names = self.space.recompute
        kinds = [at for at, name in enumerate(names) if _kind(name) == strategy.recompute]
        pieces = strategy.pieces_each if strategy.pipeline > 1 else 1
        same = np.isin(self.column("recompute"), kinds) & np.isin(
            self.column("schedule"),
            [at for at, name in enumerate(self.space.schedules) if strategy.pipeline == 1 or name == strategy.schedule],
        )
        for name, value in (
            ("data", strategy.data), ("tensor", strategy.tensor), ("pipeline", strategy.pipeline),
            ("expert", strategy.expert), ("context", strategy.context), ("zero", strategy.zero),
            ("sequence", int(strategy.sequence_parallel)), ("micro_batch", strategy.micro_batch),
            ("micro_batches", strategy.micro_batches), ("interleave", pieces), ("folded", int(strategy.fold_experts)),
        ):  # fmt: skip
            same &= self.column(name) == value
        if strategy.context > 1:
            same &= self.column("exchange") == EXCHANGE_NAMES.index(strategy.context_exchange)
        found = np.flatnonzero(same)
        # Of those that recompute nothing and those that recompute blocks, the first may be cut into the second.
        return int(found[np.argsort(self.by_block[found], kind="stable")[0]]) if len(found) else None

    @cached_property
    def layouts(self) -> tuple[list[Layout], Ints]:
        """The layouts that there are, and which of them each candidate has."""
        names = ("pipeline", "data", "expert", "context", "tensor", "folded")
        rows, which = np.unique(np.column_stack([self.column(name) for name in names]), axis=0, return_inverse=True)
        found = [Layout(p, d, e, c, t, self.space.order, bool(folded)) for p, d, e, c, t, folded in rows.tolist()]
        return found, which.ravel()

    @property
    def expert_copies(self) -> Ints:
        """Ranks that hold the same experts."""
        folded = np.where(self.column("folded"), self.column("tensor"), 1)
        return self.column("data") * self.column("context") * folded // self.column("expert")

    def splittings(self, *, by_data: bool, by_zero: int) -> tuple[list[Splitting], Ints]:
        """The manners of splitting layers that there are, and which of them each candidate has.

        `by_zero` is 0, or where it matters that weights are shared out, the GPUs of a server.
        """
        data = self.column("data") if by_data else np.ones(len(self), np.int64)
        replicas = self.column("data") * self.column("context")
        experts_too = self.expert_copies > 1
        shared = np.where(replicas > 1, 1 + experts_too, 3 * experts_too)
        shared[(self.column("zero") < 3) | (not by_zero)] = 0
        across = (shared > 0) & (replicas > np.maximum(1, by_zero // self.column("tensor")))
        columns = [self.column(name) for name in ("micro_batch", "tensor", "sequence", "context", "expert")]
        columns += [data, shared, across.astype(np.int64), self.column("exchange"), self.column("folded")]
        rows, which = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        made = [
            Splitting(
                size,
                tensor,
                bool(sequence),
                context,
                expert,
                data,
                shared,
                bool(across),
                EXCHANGE_NAMES[exchange],
                bool(folded),
            )
            for size, tensor, sequence, context, expert, data, shared, across, exchange, folded in rows.tolist()
        ]
        return made, which.ravel()

    def strategy(self, at: int) -> Strategy:
        """One of them as a strategy, but for the blocks that are recomputed: `head_choices` names them."""
        row = dict(zip(COLUMNS, self.table[at].tolist(), strict=True))
        schedule = self.space.schedules[row["schedule"]]
        return replace(
            self.space.usual,
            shared_overlap=self.space.usual.shared_overlap and row["expert"] > 1,
            context_exchange=EXCHANGE_NAMES[row["exchange"]],
            fold_experts=bool(row["folded"]),
            data=row["data"], tensor=row["tensor"], pipeline=row["pipeline"], expert=row["expert"],
            context=row["context"], sequence_parallel=bool(row["sequence"]), zero=row["zero"],
            recompute=_kind(self.space.recompute[row["recompute"]]), micro_batch=row["micro_batch"],
            micro_batches=row["micro_batches"], schedule=schedule,
            interleave=row["interleave"] if TIMETABLES[schedule].any_pieces else 1,
        )  # fmt: skip


def _kind(recompute: str) -> str:
    return "none" if recompute == BLOCKS else recompute


def head_choices(firsts: Iterable[int], again: Iterable[int], workload: Workload) -> tuple[LayerChoice, ...]:
    """The first blocks of every piece, so many of each, recomputed in full."""
    starts, blocks = tuple(firsts), repeating(workload)
    found: list[LayerChoice] = []
    for first, end, many in zip(starts, (*starts[1:], len(workload.layers)), again, strict=True):
        names = [workload.layers[at].name for at in range(first, end) if blocks[at]]
        found += [LayerChoice(name, recompute="full") for name in names[:many]]
    return tuple(found)


def recomputed_in(strategy: Strategy, firsts: Iterable[int], workload: Workload) -> tuple[int, ...]:
    """How many blocks of each piece a strategy names to be recomputed in full: what `head_choices` names them by."""
    named = {choice.pattern for choice in strategy.choices if choice.recompute == "full"}
    again = [layer.name in named for layer in workload.layers]
    starts = tuple(firsts)
    return tuple(sum(again[first:end]) for first, end in zip(starts, (*starts[1:], len(again)), strict=True))


def enumerate_space(space: Space, workload: Workload, gpus: int, batch: int) -> Candidates:
    """Every strategy of the space that the model, the GPUs and the batch allow, memory aside."""
    rows: list[Ints] = []
    blocks = sum(repeating(workload))
    for tensor, context, pipeline, expert, sequence, met in _degrees(space, workload, gpus):
        data = gpus // (tensor * context * pipeline)
        if batch % data:
            continue
        for micro_batch in _divisors(space.micro_batch, batch // data):
            many = batch // data // micro_batch
            if many <= MOST_MICRO_BATCHES:
                degrees = (data, tensor, pipeline, expert, context, sequence)
                rows += _rows(space, workload, degrees, met, micro_batch, many, blocks)
    table = np.concatenate(rows) if rows else np.zeros((0, len(COLUMNS)), np.int64)
    return Candidates(space, table)


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
    ring = EXCHANGE_NAMES[met[0]] == RING
    again = [at for at, name in enumerate(space.recompute) if not (ring and name == "selective")]
    found = [
        (*degrees, zero, recompute, 0, micro_batch, many, schedule, each, *met)
        for zero, recompute, (schedule, each) in product(shared, again, timetables)
    ]
    if found:
        yield np.array(found, np.int64)


def _timetables(space: Space, pipeline: int, many: int, layers: int, blocks: int) -> Iterator[tuple[int, int]]:
    """Schedules by number with the pieces of each stage; one stage has nothing to order."""
    for number, name in enumerate(space.schedules):
        named = TIMETABLES[name]
        if pipeline == 1:
            if number == 0:
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


def check_space(candidates: Candidates, workload: Workload, gpus: int, batch: int) -> None:
    """Refuse an empty space, and say what would divide."""
    if len(candidates):
        return
    near = [size for size in (math.gcd(batch, gpus), gpus) if size > 1]
    raise PlanError(
        f"no split of {workload.name} over {gpus} GPUs divides a batch of {batch}: give a batch that is a multiple of "
        f"{near[-1] if near else gpus}"
    )
