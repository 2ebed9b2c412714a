"""What communication costs where ranks are laid out in some way: seconds by stage and channel, and loads of links.

A layout (degrees and the order in which ranks are laid over GPUs) has every collective and send of one byte written
out and routed once, as the simulator does it. From that follow what one copy of a collective takes by itself, what all
copies of a stage take together, and what each puts on every link.

Copies that no colouring can tell apart run at the same time whatever the step does (the colours are an equitable
partition of ranks, copies, transfers and links, so the fair shares of a flow simulation are the same for all of a
colour). For these the time of all together holds for each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.planner.channels import CHANNELS, Channel, move_on
from ropewalk.strategy.placement import DEFAULT_ORDER, Placement
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.expand import Expansion
from ropewalk.task.graph import Kind
from ropewalk.task.lower.moves import STREAMS, Scope
from ropewalk.task.lower.roster import Roster
from ropewalk.task.step import Act, Step
from ropewalk.training.network import NetworkUse, expand_on

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

SENDS = (Channel.SEND_ON, Channel.SEND_BACK)
SAME = 1e-9
"""Loads that differ by less are those of links that do the same."""


class Layout(NamedTuple):
    """How many ranks there are of every sort, and how they are laid over GPUs."""

    pipeline: int = 1
    data: int = 1
    expert: int = 1
    context: int = 1
    tensor: int = 1
    order: str = DEFAULT_ORDER

    @property
    def strategy(self) -> Strategy:
        return Strategy(
            data=self.data, tensor=self.tensor, pipeline=self.pipeline, expert=self.expert, context=self.context
        )

    def channels(self, *, experts: bool, tables: bool, tied: bool) -> list[Channel]:
        """What ranks communicate for in this layout of a model that has experts, tables, a tied embedding."""
        replicas = self.data * self.context
        wanted = {
            Channel.TENSOR_REDUCE: self.tensor > 1, Channel.TENSOR_GATHER: self.tensor > 1,
            Channel.TENSOR_SCATTER: self.tensor > 1,
            Channel.CONTEXT_GATHER: self.context > 1, Channel.CONTEXT_SCATTER: self.context > 1,
            Channel.EXPERT: experts and self.expert > 1, Channel.TABLES: tables and self.data > 1,
            Channel.DATA_REDUCE: replicas > 1, Channel.DATA_SCATTER: replicas > 1, Channel.DATA_GATHER: replicas > 1,
            Channel.EXPERT_REDUCE: experts and replicas > self.expert,
            Channel.EXPERT_SCATTER: experts and replicas > self.expert,
            Channel.EXPERT_GATHER: experts and replicas > self.expert,
            Channel.SEND_ON: self.pipeline > 1, Channel.SEND_BACK: self.pipeline > 1,
            Channel.TIED: tied and self.pipeline > 1,
        }  # fmt: skip
        return [channel for channel, there in wanted.items() if there]


@dataclass(frozen=True, eq=False)
class LayoutCosts:
    """What communication costs in one layout."""

    seconds: Floats
    """By stage and channel: per collective, per byte of one copy, per byte of all copies together."""
    term_start: Ints
    """By link that can be the busiest: its terms."""
    term: Ints
    load: Floats
    symmetric: bool
    """Do all copies of every collective run at the same time?"""


def layout_costs(layout: Layout, channels: Collection[Channel], fabric: Fabric, use: NetworkUse) -> LayoutCosts:
    """Write one byte of everything out, route it, and see what it takes."""
    written = _Probe(layout, channels)
    seconds = np.zeros((layout.pipeline, CHANNELS, 3))
    if not written.sort_of_operation.size:
        return LayoutCosts(seconds, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), True)
    expansion, routes = expand_on(written.step, fabric, use).routed(use.router(fabric))
    graph = expansion.graph
    task = np.flatnonzero(graph.kind == Kind.TRANSFER)
    row = routes.rows_of(graph, task)
    operation = expansion.operation_of_task[task].astype(np.int64)
    start, link, share = routes.usage()
    hops = np.diff(start)[row]
    hop_task = np.repeat(np.arange(len(task)), hops)
    hop = ranges(start[row], hops)
    hop_link = link[hop].astype(np.int64)
    load = share[hop] * graph.amount[task][hop_task] / fabric.bandwidth[hop_link]
    waiting = graph.start_up[task] + routes.latency()[row]
    colours = _Colours(written, task, operation, hop_task, hop_link, load, graph.rate_cap[task], fabric)
    together = colours.simultaneous()
    sort, links = written.sort_of_operation, fabric.links
    alone = np.maximum(
        _most(operation, graph.amount[task] / graph.rate_cap[task], len(sort)),
        _most_of_sums(operation[hop_task], hop_link, load, links, len(sort)),
    )
    begins = np.full(len(sort), np.inf)
    np.minimum.at(begins, operation, waiting)
    column = seconds.reshape(-1, 3)
    used = np.unique(sort)
    column[used, 0] = _least(sort, begins, len(column))[used]
    column[used, 1] = _least(sort, alone, len(column))[used]
    column[used, 2] = np.maximum(
        _most_of_sums(sort[operation[hop_task]], hop_link, load, links, len(column)), _most(sort, alone, len(column))
    )[used]
    column[together, 1] = column[together, 2]
    terms = _terms(sort[operation[hop_task]], hop_link, load, links)
    return LayoutCosts(seconds, *terms, bool(together.size == used.size))


class _Probe:
    """One byte of everything that the ranks of every stage communicate for."""

    def __init__(self, layout: Layout, channels: Collection[Channel]) -> None:
        roster = Roster(Placement(layout.strategy, layout.order))
        stages = range(layout.pipeline)
        groups: list[NDArray[np.int32]] = []
        first_group: dict[tuple[Scope, int], tuple[int, int]] = {}
        columns: list[tuple[Ints, Ints, Ints, Ints, Ints, Ints]] = []
        for channel in channels:
            move = move_on(channel)
            for stage in stages:
                sort = stage * CHANNELS + channel
                if channel in SENDS:
                    here, there = (roster.grids[at].ravel() for at in (stage, (stage + _way(channel)) % len(stages)))
                    group = np.full(here.size, -1)
                else:
                    if channel is Channel.TIED and stage == layout.pipeline - 1:
                        continue
                    peer = layout.pipeline - 1 if channel is Channel.TIED else -1
                    if (move.scope, stage) not in first_group:
                        met = roster.members(move.scope, stage, peer)
                        first_group[move.scope, stage] = len(groups), len(groups) + len(met)
                        groups += met
                    group = np.arange(*first_group[move.scope, stage])
                    here = there = np.full(len(group), -1)
                many = len(group)
                columns.append(
                    (np.full(many, move.act), here, there, group, np.full(many, move.stream), np.full(many, sort))
                )  # fmt: skip
        act, rank, peer_rank, group, stream, sort_of = (
            (np.concatenate([row[at] for row in columns]) if columns else np.zeros(0, int)) for at in range(6)
        )
        many = len(act)
        self.sort_of_operation: Ints = sort_of.astype(np.int64)
        self.groups = groups
        self.step = Step(
            roster.ranks, act.astype(np.int8), rank.astype(np.int32), peer_rank.astype(np.int32),
            group.astype(np.int32), np.ones(many), stream.astype(np.int16), np.zeros(many, np.int32),
            np.zeros(many, np.int32), ("probe",), tuple(groups), np.zeros(many + 1, np.int64), np.zeros(0, np.int32),
            STREAMS,
        )  # fmt: skip
        stage_of = np.zeros(roster.ranks, np.int64)
        for stage, grid in enumerate(roster.grids):
            stage_of[grid.ravel()] = stage
        self.stage_of_rank = stage_of


def _way(channel: Channel) -> int:
    return 1 if channel is Channel.SEND_ON else -1


class _Colours:
    """Colours of ranks, operations, transfers and links, refined until nothing new is told apart."""

    def __init__(
        self, probe: _Probe, task: Ints, operation: Ints, hop_task: Ints, hop_link: Ints, load: Floats, cap: Floats,
        fabric: Fabric,
    ) -> None:  # fmt: skip
        step = probe.step
        self.sort = probe.sort_of_operation
        met = np.flatnonzero(step.act >= Act.ALL_REDUCE)
        size = np.array([len(group) for group in probe.groups], np.int64)
        begin = np.cumsum(size) - size
        many = size[step.group[met]]
        of_group = np.repeat(np.arange(len(met)), many)
        flat = np.concatenate([np.zeros(0, np.int32), *probe.groups])
        members = flat[ranges(begin[step.group[met]], many)]
        sent = np.flatnonzero(step.act == Act.SEND)
        # Who takes part in an operation, and as what: a member, who sends, who receives.
        self.by_operation = np.concatenate([met[of_group], sent, sent])
        self.by_rank = np.concatenate([members, step.rank[sent], step.peer[sent]]).astype(np.int64)
        self.by_role = np.concatenate([np.zeros(len(members)), np.ones(len(sent)), np.full(len(sent), 2)])
        self.operation, self.hop_task, self.hop_link = operation, hop_task, hop_link
        self.load, self.cap, self.fabric = load, cap, fabric
        self.stage_of_rank = probe.stage_of_rank

    def simultaneous(self) -> Ints:
        """Sorts of operations all of whose copies have one colour."""
        rank = _hashed(self.stage_of_rank)
        operation = _hashed(self.sort)
        transfer = _mixed(operation[self.operation], _hashed(_rounded(self.cap)))
        link = np.zeros(self.fabric.links, np.uint64)
        weight, role = _hashed(_rounded(self.load)), _hashed(self.by_role.astype(np.int64))
        seen = 0
        while True:
            link = _mixed(link, _summed(self.hop_link, _mixed(transfer[self.hop_task], weight), len(link)))
            transfer = _mixed(transfer, _summed(self.hop_task, _mixed(link[self.hop_link], weight), len(transfer)))
            operation = _mixed(operation, _summed(self.operation, transfer, len(operation)))
            rank = _mixed(rank, _summed(self.by_rank, _mixed(operation[self.by_operation], role), len(rank)))
            operation = _mixed(operation, _summed(self.by_operation, _mixed(rank[self.by_rank], role), len(operation)))
            transfer = _mixed(transfer, operation[self.operation])
            told = sum(len(np.unique(colours)) for colours in (link, transfer, operation, rank))
            if told == seen:
                break
            seen = told
        first = np.unique(self.sort, return_index=True)
        sorts, which = np.unique(self.sort, return_inverse=True)
        return sorts[np.bincount(which, operation != operation[first[1]][which]) == 0]


def _hashed(values: NDArray[np.generic]) -> Words:
    """Values as words that look random (the finaliser of splitmix64)."""
    word = np.ascontiguousarray(values).astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ (word >> np.uint64(31)), np.uint64)


def _rounded(values: Floats) -> Ints:
    """Numbers that are equal up to rounding as equal whole numbers."""
    mantissa, exponent = np.frexp(values)
    whole = np.where(np.isfinite(values), np.rint(mantissa / SAME), 0.0)
    return np.asarray(whole.astype(np.int64) * 4096 + exponent, np.int64)


def _mixed(one: Words, other: Words) -> Words:
    return _hashed(one * np.uint64(3) + other)


def _summed(at: Ints, words: Words, many: int) -> Words:
    """Sums of words, whatever their order."""
    order = np.argsort(at, kind="stable")
    total = np.concatenate([[np.uint64(0)], np.cumsum(words[order], dtype=np.uint64)])
    edges = np.searchsorted(at[order], np.arange(many + 1))
    return np.asarray(total[edges[1:]] - total[edges[:-1]], np.uint64)


def _most(at: Ints, values: Floats, many: int) -> Floats:
    found = np.zeros(many)
    np.maximum.at(found, at, values)
    return found


def _least(at: Ints, values: Floats, many: int) -> Floats:
    found = np.full(many, np.inf)
    np.minimum.at(found, at, values)
    return found


def _most_of_sums(at: Ints, link: Ints, load: Floats, links: int, many: int) -> Floats:
    """The largest load that all with the same number put on any link."""
    key, which = np.unique(at * links + link, return_inverse=True)
    return _most(key // links, np.bincount(which, load), many)


def _terms(sort: Ints, link: Ints, load: Floats, links: int) -> tuple[Ints, Ints, Floats]:
    """By link what each sort of operation puts on it per byte; of links that do the same, one."""
    key, which = np.unique(link * (int(sort.max()) + 1) + sort, return_inverse=True)
    value = np.bincount(which, load)
    of_link, term = np.divmod(key, int(sort.max()) + 1)
    word = _mixed(_hashed(term), _hashed(_rounded(value)))
    same = _summed(of_link, word, links)
    _, keep = np.unique(same, return_index=True)
    chosen = np.isin(of_link, keep)
    owner = of_link[chosen]
    start = np.flatnonzero(np.diff(owner, prepend=-1))
    return np.append(start, len(owner)).astype(np.int64), term[chosen].astype(np.int64), value[chosen]
