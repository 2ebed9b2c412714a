"""Price every candidate of a space: bytes on the fullest GPU, and seconds no simulation will fall below."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.device.host import STATE_BYTES
from ropewalk.device.pricer import Pricer
from ropewalk.engines import Engine
from ropewalk.fabric import Fabric
from ropewalk.planner._floor_kernel import floor_of_all
from ropewalk.planner._legs_kernel import LayerArrays
from ropewalk.planner._replay_kernel import ReplayCosts, replay_all
from ropewalk.planner._rows_kernel import DEEP, EARLY, GPIPE, INTERLEAVED, WRITTEN
from ropewalk.planner.channels import CHANNELS, Channel
from ropewalk.planner.columns import COLUMNS as KERNEL_COLUMNS
from ropewalk.planner.columns import SETTINGS, Column, Setting
from ropewalk.planner.layers import Held, LayerTable, Splitting, layer_table, spreads_tables
from ropewalk.planner.layout import Layout, LayoutCosts, layout_costs
from ropewalk.planner.sized import Sized, equal_runs, recompute_to_fit
from ropewalk.planner.space import BLOCKS, Candidates, head_choices
from ropewalk.planner.written import WrittenRows, written_rows
from ropewalk.progress import counted
from ropewalk.room import foresee
from ropewalk.strategy._balance_kernel import balance
from ropewalk.strategy.memory import ON_HOST, gradient_bytes, memory, state_bytes
from ropewalk.strategy.prices import Inside, KeptPrices
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.stages import SLACK, cut
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.kinds import Made
from ropewalk.timetable.named import timetable
from ropewalk.training.network import NetworkUse
from ropewalk.workload.operator import ULYSSES
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import shares_out, stack_of

NO_NETWORK = LayoutCosts(
    np.zeros((1, CHANNELS, 3)), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), symmetric=True
)
"""Where nothing fits, nothing is probed."""
LaidOut = dict[tuple[Layout, str, tuple[Channel, ...]], LayoutCosts]
"""What communication costs in layouts, by the collectives and what they are for: of one network, whatever the model."""
RULES = {"1f1b": EARLY, "1f1b-deep": DEEP, "gpipe": GPIPE, "interleaved": INTERLEAVED}
"""Timetables whose rows are found by arithmetic; all others are written down."""


LAYOUT_S, LAYOUT_GPUS, GROWTH = 0.19, 8192, 1.3
"""To write the collectives of a layout of so many GPUs, and the power of their number by which that grows."""


def foresee_layouts(layouts: int, gpus: int) -> None:
    """Say what it takes to know the communication of so many layouts, before any strategy can be judged."""
    foresee(
        f"the communication of {layouts} layouts of {gpus:,} GPUs",
        0.0,
        "name degrees, such as --tp 8 --pp 4, or use fewer GPUs",
        seconds=layouts * LAYOUT_S * (gpus / LAYOUT_GPUS) ** GROWTH,
    )


@dataclass(frozen=True, eq=False)
class Priced:
    """Candidates with what is known of them before any is simulated."""

    candidates: Candidates
    memory_bytes: Floats
    """On the fullest GPU."""
    fits: NDArray[np.bool_]
    floor_s: Floats
    """Seconds that no step falls below, of those that fit; not a number for others."""
    symmetric: NDArray[np.bool_]
    """Do all copies of every collective run at the same time?"""
    kernels: KernelInput

    def replay(self, which: Ints) -> Floats:
        """Higher bounds for some of those that fit: their steps replayed, and their busiest links."""
        found = np.full((len(self.candidates), 2), np.nan)
        one = self.kernels
        replay_all(one.rows, which, one.model, one.written, one.network, one.settings, one.updates, found)
        return np.asarray(np.fmax(found[which, 0], found[which, 1]), np.float64)

    def least_of_any(self, which: Ints, rows: Ints, free: ReplayCosts) -> Floats:
        """Seconds that hold wherever the model is cut, whatever collectives run, in whatever order and placement.

        Of a candidate with one stage those of its step, of others those of one micro-batch on all stages. `rows` are
        those of some candidates; `free` has costs that no collective and no placement falls below.
        """
        one, found = self.kernels, np.full(len(rows), np.nan)
        settings = one.settings.copy()
        settings[Setting.FREE] = 1.0
        everyone = np.arange(len(rows))
        floor_of_all(rows, everyone, one.model, one.written, free, settings, one.updates[which], found)
        return found

    def firsts(self, at: int) -> tuple[int, ...]:
        """The first layer of every piece of a candidate."""
        row = self.kernels.rows[at]
        many = int(row[Column.STAGES] * row[Column.PIECES_EACH])
        return tuple(self.kernels.model.cuts[row[Column.CUT] :][:many].tolist())

    def strategy(self, at: int, workload: Workload) -> Strategy:
        """A candidate as a strategy with nothing left open."""
        strategy, again = self.candidates.strategy(at), int(self.candidates.column("again")[at])
        if not again:
            return strategy
        firsts = self.firsts(at)
        return replace(strategy, choices=head_choices(firsts, (again,) * len(firsts), workload))


class KernelInput(NamedTuple):
    """What kernels read about candidates."""

    rows: Ints
    model: LayerArrays
    written: WrittenRows
    network: ReplayCosts
    settings: Floats
    updates: Floats


@dataclass(eq=False)
class StrategyPrices:
    """Prices strategies of one model on one cluster in bulk; keeps what was found about splittings and layouts."""

    workload: Workload
    pricer: Pricer
    fabric: Fabric
    use: NetworkUse
    in_step: bool = True
    """Do copies of a collective that the network cannot tell apart run at the same time? Not where the network stands
    for others, which can."""
    engine: Engine = field(default_factory=Engine)
    """What writes collectives of many layouts side by side."""
    made: Made = field(default_factory=dict)
    """Schedules that were made for the network."""
    inside: Inside | None = None
    """How GPUs of a server exchange what they share, where tensor ranks are in one."""
    _tables: dict[Splitting, tuple[Floats, ...]] = field(default_factory=dict)
    _cuts: dict[tuple[Splitting, int], Ints] = field(default_factory=dict)
    _layouts: LaidOut = field(default_factory=dict)
    _updates: dict[tuple[float, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listed = KeptPrices(self.pricer, self.inside)
        self.by_data, self.by_zero = spreads_tables(self.workload), shares_out(stack_of(self.workload))

    @property
    def _server(self) -> int:
        """GPUs of a server."""
        return 1 if self.inside is None else self.inside.gpus

    def on(self, fabric: Fabric, use: NetworkUse) -> StrategyPrices:
        """Prices of the same model on another network of the same GPUs; what layers cost is known already."""
        return replace(self, fabric=fabric, use=use, in_step=True, made={}, _layouts={})

    def sharing(self, layouts: LaidOut) -> None:
        """Know what was found out about layouts of this very network, and tell what is found."""
        self._layouts = layouts

    @property
    def room(self) -> float:
        """Bytes of a GPU."""
        return self.pricer.device.memory_bytes

    def price(self, candidates: Candidates, say: Callable[[str], None] = lambda now: None) -> Priced:
        """Bytes of all, seconds of those that fit."""
        usual = candidates.space.usual
        say("pricing layers")
        splittings, which = candidates.splittings(by_data=self.by_data, by_zero=self._server if self.by_zero else 0)
        table = self.layers(splittings, usual)
        rows, cuts = self._kernel_rows(candidates, splittings, which, table)
        written, settings = self._written(candidates, rows), self._settings(usual)
        say("counting memory")
        width = int((rows[:, Column.STAGES] * rows[:, Column.PIECES_EACH]).max(initial=1))
        again = equal_runs(int(table.held[0, :, Held.BLOCK].sum()), width)
        sized = Sized(table.held, cuts, again, written, settings)
        total, stages = recompute_to_fit(rows, np.flatnonzero(candidates.by_block), sized, width, self.room)
        candidates = candidates.recomputing(rows[:, Column.AGAIN] // width)
        fits = (total <= self.room) & self._fits_host(stages, usual)
        network, symmetric = self._network(candidates, rows, fits)
        updates = self.priced_updates(stages, fits, usual)
        model = LayerArrays(table.seconds, table.launch, table.held, table.met, table.hidden, cuts, again)
        given = KernelInput(rows, model, written, network, settings, updates)
        floor = np.full(len(rows), np.nan)
        say("bounding steps")
        floor_of_all(rows, np.flatnonzero(fits), model, written, network, settings, updates, floor)
        return Priced(candidates, total, fits, floor, symmetric, given)

    def memory_of(self, strategy: Strategy) -> float:
        """Bytes on the fullest GPU of one strategy of any kind."""
        workload = self.workload.at_batch(strategy.micro_batch)
        shares = shares_of(workload, strategy)
        return memory(strategy, shares, cut(workload, strategy, shares, self.listed), self.listed.numbers).most

    def layers(self, splittings: list[Splitting], usual: Strategy) -> LayerTable:
        """The layer table of these splittings."""
        new = tuple(one for one in splittings if one not in self._tables)
        made = layer_table(self.workload, new, self.listed, usual)
        for at, one in enumerate(new):
            self._tables[one] = made.seconds[at], made.launch[at], made.held[at], made.met[at], made.hidden[at]
        columns = zip(*(self._tables[one] for one in splittings), strict=True)
        most = max((len(self._tables[one][-1][0, 0]) for one in splittings), default=0)
        *others, hidden = (list(column) for column in columns)
        widened = [np.pad(one, ((0, 0), (0, 0), (0, most - one.shape[2]), (0, 0))) for one in hidden]
        return LayerTable(tuple(splittings), *(np.stack(column) for column in (*others, widened)))

    def cut(self, splitting: Splitting, held: Floats, pieces: int) -> Ints:
        """The first layer of each piece, as `strategy.stages.cut` balances them."""
        key = splitting, pieces
        if key not in self._cuts:
            before = np.concatenate([[0.0], np.cumsum(held[:, Held.COST])])
            self._cuts[key] = balance(before, pieces, SLACK)
        return self._cuts[key]

    def _kernel_rows(
        self, candidates: Candidates, splittings: list[Splitting], which: Ints, table: LayerTable
    ) -> tuple[Ints, Ints]:
        """Candidates as the kernels read them, and the list of cuts."""
        rows = np.zeros((len(candidates), KERNEL_COLUMNS), np.int64)
        column = candidates.column
        rows[:, Column.SPLITTING] = which
        for name, source in (
            ("STAGES", "pipeline"), ("MICRO_BATCHES", "micro_batches"), ("ZERO", "zero"),
            ("TENSOR", "tensor"), ("CONTEXT", "context"), ("SEQUENCE", "sequence"),
            ("PIECES_EACH", "interleave"),
        ):  # fmt: skip
            rows[:, Column[name]] = column(source)
        rows[:, Column.REPLICAS] = column("data") * column("context")
        rows[:, Column.EXPERT_COPIES] = candidates.expert_copies
        kinds = np.array(
            [0 if name == BLOCKS else RECOMPUTE_OF_LAYERS.index(name) for name in candidates.space.recompute]
        )
        rules = np.array([RULES.get(name, WRITTEN) for name in candidates.space.schedules])
        rows[:, Column.RECOMPUTE] = kinds[column("recompute")]
        rows[:, Column.RULE] = rules[column("schedule")]
        pieces = column("pipeline") * column("interleave")
        pairs, of_pair = np.unique(np.column_stack([which, pieces]), axis=0, return_inverse=True)
        firsts = [self.cut(splittings[one], table.held[one], count) for one, count in pairs.tolist()]
        start = np.cumsum([0, *map(len, firsts)])[:-1]
        rows[:, Column.CUT] = start[of_pair.ravel()]
        return rows, np.concatenate([np.zeros(0, np.int64), *firsts])

    def _written(self, candidates: Candidates, rows: Ints) -> WrittenRows:
        """Timetables that follow no rule, written down once each."""
        odd = np.flatnonzero(rows[:, Column.RULE] == WRITTEN)
        names = ("schedule", "pipeline", "micro_batches", "interleave")
        keys, which = np.unique(
            np.column_stack([candidates.column(name)[odd] for name in names]), axis=0, return_inverse=True
        )
        rows[odd, Column.WRITTEN] = which.ravel()
        return written_rows([timetable(candidates.space.schedules[name], *size) for name, *size in keys.tolist()])

    def _network(
        self, candidates: Candidates, rows: Ints, fits: NDArray[np.bool_]
    ) -> tuple[ReplayCosts, NDArray[np.bool_]]:
        """What communication costs in the layouts of candidates that fit."""
        layouts, which = candidates.layouts
        used = np.unique(which[fits])
        foresee_layouts(len(used), self.fabric.hosts)
        self._lay_out([layouts[at] for at in used.tolist()])
        found = [self.layout(layouts[at]) for at in counted(used.tolist(), "writing collectives, layout by layout")]
        found = found or [NO_NETWORK]
        place = np.zeros(len(layouts), np.int64)
        place[used] = np.arange(len(used))
        stages = np.cumsum([0, *(len(one.seconds) for one in found)])
        rows[:, Column.LAYOUT] = stages[place[which]]
        rows[:, Column.LOADS] = place[which]
        symmetric = np.array([one.symmetric for one in found], np.bool_)[place[which]] & fits
        links = [len(one.term_start) - 1 for one in found]
        terms = np.cumsum([0, *(len(one.term) for one in found)])
        network = ReplayCosts(
            np.concatenate([one.seconds for one in found]),
            np.cumsum([0, *links]),
            np.append(
                np.concatenate([one.term_start[:-1] + at for one, at in zip(found, terms, strict=False)]), terms[-1]
            ),
            np.concatenate([one.term for one in found]),
            np.concatenate([one.load for one in found]),
        )
        return network, symmetric

    def _lay_out(self, layouts: list[Layout]) -> None:
        """Have the costs of layouts found side by side, where there are workers for it."""
        usual = self.use.algorithm
        keys = {layout: (layout, usual, tuple(self.channels(layout))) for layout in layouts}
        new = [layout for layout in layouts if keys[layout] not in self._layouts]
        if self.engine.workers == 1 or len(new) < 2:
            return
        task = partial(_costs_of, self.fabric, self.use, self.in_step)
        found = self.engine.map(task, [(layout, list(keys[layout][2])) for layout in new])
        self._layouts.update({keys[layout]: costs for layout, costs in zip(new, found, strict=True)})

    def layout(
        self, layout: Layout, algorithm: str | None = None, channels: Collection[Channel] | None = None
    ) -> LayoutCosts:
        """What communication, or some channels of it, costs in a layout, with the usual collectives unless given."""
        algorithm = algorithm or self.use.algorithm
        wanted = tuple(self.channels(layout) if channels is None else channels)
        key = layout, algorithm, wanted
        if key not in self._layouts:
            use = replace(self.use, algorithm=algorithm)
            self._layouts[key] = layout_costs(layout, wanted, self.fabric, use, in_step=self.in_step, made=self.made)
        return self._layouts[key]

    def channels(self, layout: Layout) -> list[Channel]:
        """What ranks of this model communicate for in a layout."""
        held = next(iter(self._tables.values()))[2]
        experts, tied = bool(held[:, [Held.EXPERT, Held.FROZEN_EXPERT]].any()), bool(held[:, Held.TIED].any())
        heads = any(one.exchange == ULYSSES for one in self._tables)
        return layout.channels(experts=experts, tables=self.by_data, tied=tied, heads=heads)

    def _fits_host(self, updated: Floats, usual: Strategy) -> NDArray[np.bool_]:
        """Does the host's memory hold the state of an optimiser that lies there?"""
        host = self.pricer.device.host
        if usual.optimiser != ON_HOST or host is None:
            return np.ones(len(updated), np.bool_)
        return np.asarray(updated[:, :, 0].max(axis=1) * STATE_BYTES <= host.memory)

    def priced_updates(self, updated: Floats, fits: NDArray[np.bool_], usual: Strategy) -> Floats:
        """Seconds of GPU and host in which every stage updates its parameters; each number of them is priced once."""
        sizes, which = np.unique(updated[fits, :, 0], return_inverse=True)
        seconds = np.array([self.listed.update(int(size), 0, usual.optimiser).gpu_s for size in sizes.tolist()])
        each = self.listed.update(1, 1, usual.optimiser).host_s
        found = np.zeros((*updated.shape[:2], 2))
        found[fits, :, 0] = seconds[which].reshape(-1, updated.shape[1])
        found[fits, :, 1] = each * updated[fits, :, 1]
        return found

    def _settings(self, usual: Strategy) -> Floats:
        size, numbers = self.listed.element_bytes, self.listed.numbers
        settings = np.zeros(SETTINGS)
        settings[Setting.ELEMENT_BYTES] = size
        settings[Setting.GRADIENT_BYTES] = gradient_bytes(usual, size)
        settings[Setting.STATE_BYTES] = state_bytes(usual.optimiser, size, master_weights=usual.master_weights)
        settings[Setting.COPY_BYTES] = numbers.copy_bytes
        if usual.narrow_weights and numbers.narrow_bytes is not None:
            settings[Setting.COPY_BYTES] -= size
            settings[Setting.SENT_LESS_BYTES] = 0.0 if numbers.sent_bytes is None else size - numbers.sent_bytes
        settings[Setting.BUCKET_BYTES] = usual.order.bucket_bytes
        settings[Setting.REDUCE_LATE] = not usual.order.overlap
        for name in ("prefetch", "regather", "scatter_gather", "gather_ahead"):
            settings[Setting[name.upper()]] = getattr(usual, name)
        return settings


def _costs_of(fabric: Fabric, use: NetworkUse, in_step: bool, asked: tuple[Layout, list[Channel]]) -> LayoutCosts:
    return layout_costs(*asked, fabric, use, in_step=in_step)
