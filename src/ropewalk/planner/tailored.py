"""Candidates with a cut of their own: where every piece begins, and how many of its blocks are recomputed.

The cut of a candidate of the space is even, and all its pieces recompute as many blocks. Here pieces may differ: stages
that keep fewer micro-batches recompute less and take more layers. Memory and replay are those of all candidates, so
hundreds of cuts of one candidate are looked at in the time of one simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._memory_kernel import BYTES, home_of
from ropewalk.planner._replay_kernel import ReplayCosts, replay_all
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.sized import Sized, total_of
from ropewalk.planner.space import head_choices
from ropewalk.strategy.memory import usable_bytes
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy

FAR = 1e12
"""More seconds than any step takes."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts of one candidate, as rows."""

    firsts: Ints
    """By cut and piece: its first layer."""
    again: Ints
    """By cut and piece: blocks at its head that are recomputed in full."""
    memory_bytes: Floats
    """On the fullest GPU."""
    replay_s: Floats
    """Seconds that a step takes at least, infinite where it does not fit."""

    @property
    def rank(self) -> Floats:
        """What is less is better: seconds of those that fit, then bytes of those that do not."""
        return np.where(np.isfinite(self.replay_s), self.replay_s, FAR + self.memory_bytes)

    @property
    def best(self) -> int:
        return int(self.rank.argmin())

    def only(self, which: Ints) -> Cuts:
        return Cuts(self.firsts[which], self.again[which], self.memory_bytes[which], self.replay_s[which])


@dataclass(frozen=True, eq=False)
class Tailor:
    """Cuts one candidate in other places, lays it out otherwise, and says what becomes of it."""

    prices: StrategyPrices
    priced: Priced
    at: int
    order: str = DEFAULT_ORDER
    """In which order its ranks are laid over GPUs."""
    algorithm: str | None = None
    """The usual collectives unless given."""
    bucket_bytes: float | None = None
    """Gradients that are collected before they are reduced, unless as usual."""

    @property
    def row(self) -> Ints:
        row: Ints = self.priced.kernels.rows[self.at]
        return row

    @property
    def pieces(self) -> int:
        return int(self.row[Column.STAGES] * self.row[Column.PIECES_EACH])

    @property
    def even(self) -> tuple[int, ...]:
        """The first layer of every piece, as the candidate has them by itself."""
        return self.priced.firsts(self.at)

    @cached_property
    def homes(self) -> Ints:
        """The stage of every piece."""
        return np.array([home_of(self.row, self.priced.kernels.written, piece) for piece in range(self.pieces)])

    @cached_property
    def network(self) -> ReplayCosts:
        """What communication costs in the layout of this candidate, which need not fit as it stands."""
        layouts, which = self.priced.candidates.layouts
        found = self.prices.layout(layouts[which[self.at]]._replace(order=self.order), self.algorithm)
        links = np.array([0, len(found.term_start) - 1])
        return ReplayCosts(found.seconds, links, found.term_start, found.term, found.load)

    def cut(self, firsts: Ints, *, alike: bool) -> Cuts:
        """These cuts with as few recomputed blocks as it takes to fit, as many in all pieces where they are `alike`."""
        return self.cut_as(firsts, self._fewest(firsts, alike=alike))

    def strategy(self, cuts: Cuts, at: int) -> Strategy:
        """A cut as a strategy with nothing left open."""
        workload, firsts = self.prices.workload, cuts.firsts[at].tolist()
        choices = head_choices(firsts, cuts.again[at].tolist(), workload)
        whole = self.priced.candidates.strategy(self.at)
        return replace(whole, stages=None if tuple(firsts) == self.even else tuple(firsts), choices=choices)

    def _fewest(self, firsts: Ints, *, alike: bool) -> Ints:
        """By cut and piece the fewest blocks to recompute that let its stage fit."""
        if self.row[Column.RECOMPUTE] or not self.priced.candidates.may_recompute:
            return np.zeros_like(firsts)
        stages, blocks = int(self.row[Column.STAGES]), self._given(firsts, np.zeros_like(firsts)).blocks
        room = usable_bytes(self.prices.room)
        less, enough = np.full((len(firsts), stages), -1), np.full((len(firsts), stages), blocks)
        while (enough - less > 1).any():
            middle = np.maximum((less + enough) // 2, 0)
            held = self._given(firsts, middle[:, self.homes]).stages(self._rows(firsts))[:, :, BYTES]
            fit = (held <= room) & (enough - less > 1)
            enough, less = np.where(fit, middle, enough), np.where(~fit & (enough - less > 1), middle, less)
        if alike:
            enough = np.broadcast_to(enough.max(1, keepdims=True), enough.shape)
        return np.ascontiguousarray(enough[:, self.homes])

    def cut_as(self, firsts: Ints, again: Ints) -> Cuts:
        """These cuts with these numbers of recomputed blocks."""
        rows, sized, one = self._rows(firsts), self._given(firsts, again), self.priced.kernels
        stages = sized.stages(rows)
        total = total_of(stages)
        fits = total <= self.prices.room
        updates = self.prices.priced_updates(stages, fits, self.priced.candidates.space.usual)
        found = np.full((len(rows), 2), np.inf)
        model, settings = one.model._replace(cuts=sized.cuts, again=sized.again), one.settings.copy()
        if self.bucket_bytes is not None:
            settings[Setting.BUCKET_BYTES] = self.bucket_bytes
        replay_all(rows, np.flatnonzero(fits), model, one.written, self.network, settings, updates, found)
        return Cuts(firsts, again, total, found.max(1))

    def _rows(self, firsts: Ints) -> Ints:
        rows = np.repeat(self.row[None], len(firsts), axis=0)
        rows[:, Column.CUT] = rows[:, Column.AGAIN] = np.arange(len(firsts)) * self.pieces
        rows[:, Column.LAYOUT] = rows[:, Column.LOADS] = 0
        return rows

    def _given(self, firsts: Ints, again: Ints) -> Sized:
        one = self.priced.kernels
        return Sized(one.model.held, firsts.ravel(), np.ascontiguousarray(again).ravel(), one.written, one.settings)
