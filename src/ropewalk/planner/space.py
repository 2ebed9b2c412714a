"""What can be chosen: every strategy of a uniform space for a model on so many GPUs, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import Findings, PlanError
from ropewalk.planner.layers import Splitting, repeating
from ropewalk.planner.layout import Layout
from ropewalk.strategy.context import EXCHANGES
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS
from ropewalk.strategy.strategy import LayerChoice, Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.workload import Workload

Numbers = tuple[int, ...]


BLOCKS = "blocks"
"""Recompute as many blocks at the head of every piece as it takes to fit into memory, in full, and nothing else."""
USUAL_SCHEDULES = tuple(
    name
    for name, one in TIMETABLES.items()
    if one.searched and one.copies == 1 and not one.fitted and not one.side_by_side
)
"""Timetables that follow from the numbers of stages and micro-batches alone, keep one copy of the model and run one
pass at a time."""
EXCHANGE_NAMES = tuple(EXCHANGES)
"""What the numbers in the column `exchange` stand for."""


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
                findings.add(
                    f"schedule {name} delays gradients of concurrent passes, which is not searched: use "
                    f"1f1b-overlap, or try it with `ropewalk simulate --schedule {name}`"
                )
        kinds = (*RECOMPUTE_OF_LAYERS, BLOCKS)
        for what, given, known in (("recompute", self.recompute, kinds), ("zero", self.zero, (0, 1, 2, 3))):
            strangers = [str(one) for one in given if one not in known]
            if strangers or not given:
                findings.add(f"{what} {', '.join(strangers) or 'is empty'}: use some of {', '.join(map(str, known))}")
        if self.usual.narrow_weights and set(self.zero) == {3}:
            findings.add("zero 3 gathers full-precision weights: give some of 0, 1 and 2, or leave --fp8-params out")
        if self.usual.gather_ahead and 1 not in self.zero:
            findings.add(
                "weights are gathered ahead of the next forward pass under zero 1: add 1 to --zero, or leave "
                "--overlap-param-gather out"
            )
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
        beside = strategy.pipeline > 1 and strategy.side_by_side
        meanwhile = self.space.usual.shared_overlap and strategy.expert > 1 and not beside
        ahead = self.space.usual.gather_ahead and strategy.zero == 1
        if strategy.parts or strategy.rows or (strategy.shared_overlap, strategy.gather_ahead) != (meanwhile, ahead):
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
            shared_overlap=self.space.usual.shared_overlap
            and row["expert"] > 1
            and not (row["pipeline"] > 1 and TIMETABLES[schedule].side_by_side),
            gather_ahead=self.space.usual.gather_ahead and row["zero"] == 1,
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
