"""Price every candidate of a space: bytes on the fullest GPU, and seconds no simulation will fall below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.pricer import Pricer
from ropewalk.fabric import Fabric
from ropewalk.planner._floor_kernel import floor_of_all
from ropewalk.planner._legs_kernel import Model
from ropewalk.planner._memory_kernel import memory_of_all
from ropewalk.planner._replay_kernel import Network, replay_all
from ropewalk.planner._rows_kernel import DEEP, EARLY, GPIPE, INTERLEAVED, WRITTEN
from ropewalk.planner.columns import COLUMNS as KERNEL_COLUMNS
from ropewalk.planner.columns import SETTINGS, Column, Setting
from ropewalk.planner.layers import Held, LayerTable, Splitting, layer_table, spreads_tables
from ropewalk.planner.layout import Layout, LayoutCosts, layout_costs
from ropewalk.planner.space import Candidates
from ropewalk.planner.written import WrittenRows, written_rows
from ropewalk.strategy._balance_kernel import balance
from ropewalk.strategy.memory import FRAGMENTATION, WORKSPACE_BYTES, gradient_bytes, state_bytes
from ropewalk.strategy.prices import PriceList
from ropewalk.strategy.stages import SLACK
from ropewalk.strategy.strategy import RECOMPUTE_OF_LAYERS, Strategy
from ropewalk.timetable.named import timetable
from ropewalk.training.network import NetworkUse
from ropewalk.workload.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RULES = {"1f1b": EARLY, "1f1b-deep": DEEP, "gpipe": GPIPE, "interleaved": INTERLEAVED}
"""Timetables whose rows are found by arithmetic; all others are written down."""


@dataclass(frozen=True, eq=False)
class Priced:
    """Candidates with what is known of them before any is simulated."""

    candidates: Candidates
    memory_bytes: Floats
    """On the fullest GPU."""
    fits: NDArray[np.bool_]
    floor_s: Floats
    replay_s: Floats
    """Of those that fit; not a number for others."""
    busiest_s: Floats
    """In which the busiest link carries all its bytes."""
    symmetric: NDArray[np.bool_]
    """Do all copies of every collective run at the same time?"""

    @property
    def bound_s(self) -> Floats:
        """No simulation of a candidate takes less."""
        return np.fmax(self.replay_s, self.busiest_s)


@dataclass(eq=False)
class Prices:
    """Prices strategies of one model on one cluster in bulk; keeps what was found about splittings and layouts."""

    workload: Workload
    pricer: Pricer
    fabric: Fabric
    use: NetworkUse
    _tables: dict[Splitting, tuple[Floats, Floats, Floats, Floats]] = field(default_factory=dict)
    _cuts: dict[tuple[Splitting, int], Ints] = field(default_factory=dict)
    _layouts: dict[Layout, LayoutCosts] = field(default_factory=dict)
    _updates: dict[tuple[float, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listed = PriceList(self.pricer)
        self.by_data = spreads_tables(self.workload)

    def price(self, candidates: Candidates, say: Callable[[str], None] = lambda now: None) -> Priced:
        """Bytes of all, seconds of those that fit."""
        usual = candidates.space.usual
        say("pricing layers")
        splittings, which = candidates.splittings(by_data=self.by_data)
        table = self.layers(splittings, usual)
        rows, cuts = self._kernel_rows(candidates, splittings, which, table)
        written = self._written(candidates, rows)
        settings = self._settings(usual)
        most, stages = np.zeros(len(rows)), int(candidates.column("pipeline").max(initial=1))
        updated = np.zeros((len(rows), stages, 2))
        say("memory")
        memory_of_all(rows, table.held, cuts, written, settings, updated, most)
        total = most * (1 + FRAGMENTATION) + WORKSPACE_BYTES
        fits = total <= self.pricer.device.memory_bytes
        symmetric = np.zeros(len(rows), np.bool_)
        found, floor = np.full((len(rows), 2), np.nan), np.full(len(rows), np.nan)
        if fits.any():
            say("probing collectives")
            network = self._network(candidates, rows, fits, symmetric)
            updates = self._priced_updates(updated, fits, usual)
            model = Model(table.seconds, table.launch, table.held, table.met, cuts)
            say("floors")
            floor_of_all(rows, np.flatnonzero(fits), model, written, network, settings, updates, floor)
            say("replaying")
            replay_all(rows, np.flatnonzero(fits), model, written, network, settings, updates, found)
            say("done")
        return Priced(candidates, total, fits, floor, found[:, 0], found[:, 1], symmetric)

    def layers(self, splittings: list[Splitting], usual: Strategy) -> LayerTable:
        """The layer table of these splittings."""
        new = tuple(one for one in splittings if one not in self._tables)
        made = layer_table(self.workload, new, self.listed, usual)
        for at, one in enumerate(new):
            self._tables[one] = made.seconds[at], made.launch[at], made.held[at], made.met[at]
        columns = zip(*(self._tables[one] for one in splittings), strict=True)
        return LayerTable(tuple(splittings), *(np.stack(column) for column in columns))

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
            ("STAGES", "pipeline"), ("MICRO_BATCHES", "micro_batches"), ("ZERO", "zero"), ("AGAIN", "again"),
            ("EXPERT", "expert"), ("TENSOR", "tensor"), ("CONTEXT", "context"), ("SEQUENCE", "sequence"),
            ("PIECES_EACH", "interleave"),
        ):  # fmt: skip
            rows[:, Column[name]] = column(source)
        rows[:, Column.REPLICAS] = column("data") * column("context")
        kinds = np.array([RECOMPUTE_OF_LAYERS.index(name) for name in candidates.space.recompute])
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
        names = ("schedule", "pipeline", "micro_batches")
        keys, which = np.unique(
            np.column_stack([candidates.column(name)[odd] for name in names]), axis=0, return_inverse=True
        )
        rows[odd, Column.WRITTEN] = which.ravel()
        return written_rows([timetable(candidates.space.schedules[name], *size) for name, *size in keys.tolist()])

    def _network(
        self, candidates: Candidates, rows: Ints, fits: NDArray[np.bool_], symmetric: NDArray[np.bool_]
    ) -> Network:
        """What communication costs in the layouts of candidates that fit."""
        layouts, which = candidates.layouts
        used = np.unique(which[fits])
        found = [self.layout(layouts[at]) for at in used.tolist()]
        place = np.zeros(len(layouts), np.int64)
        place[used] = np.arange(len(used))
        stages = np.cumsum([0, *(len(one.seconds) for one in found)])
        rows[:, Column.LAYOUT] = stages[place[which]]
        rows[:, Column.LOADS] = place[which]
        symmetric[:] = np.array([one.symmetric for one in found])[place[which]] & fits
        links = [len(one.term_start) - 1 for one in found]
        terms = np.cumsum([0, *(len(one.term) for one in found)])
        return Network(
            np.concatenate([one.seconds for one in found]),
            np.cumsum([0, *links]),
            np.append(np.concatenate([one.term_start[:-1] + at for one, at in zip(found, terms, strict=False)]), terms[-1]),
            np.concatenate([one.term for one in found]),
            np.concatenate([one.load for one in found]),
        )

    def layout(self, layout: Layout) -> LayoutCosts:
        """What communication costs in a layout."""
        if layout not in self._layouts:
            held = next(iter(self._tables.values()))[2]
            channels = layout.channels(
                experts=bool(held[:, Held.EXPERT].any()), tables=self.by_data, tied=bool(held[:, Held.TIED].any())
            )
            self._layouts[layout] = layout_costs(layout, channels, self.fabric, self.use)
        return self._layouts[layout]

    def _priced_updates(self, updated: Floats, fits: NDArray[np.bool_], usual: Strategy) -> Floats:
        """Seconds of GPU and host in which every stage updates its parameters; each number of them is priced once."""
        sizes, which = np.unique(updated[fits, :, 0], return_inverse=True)
        seconds = np.array([self.listed.update(int(size), 0, usual.optimiser).gpu_s for size in sizes.tolist()])
        each = self.listed.update(1, 1, usual.optimiser).host_s
        found = np.zeros_like(updated)
        found[fits, :, 0] = seconds[which].reshape(-1, updated.shape[1])
        found[fits, :, 1] = each * updated[fits, :, 1]
        return found

    def _settings(self, usual: Strategy) -> Floats:
        size = self.listed.element_bytes
        settings = np.zeros(SETTINGS)
        settings[Setting.ELEMENT_BYTES] = size
        settings[Setting.GRADIENT_BYTES] = gradient_bytes(usual, size)
        settings[Setting.STATE_BYTES] = state_bytes(usual.optimiser, size, master_weights=usual.master_weights)
        settings[Setting.BUCKET_BYTES] = usual.order.bucket_bytes
        for name in ("prefetch", "regather", "scatter_gather"):
            settings[Setting[name.upper()]] = getattr(usual, name)
        return settings
