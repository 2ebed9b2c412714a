"""What communication costs where ranks are laid out in some way: seconds by stage and channel, and loads of links.

A layout (degrees and the order in which ranks are laid over GPUs) has every collective and send of one byte written
out and routed once, as the simulator does it. From that follow what one copy of a collective takes by itself, what all
copies of a stage take together, and what each puts on every link.

Copies that the network cannot tell apart run at the same time whatever the step does (`colours`): for these the time of
all together holds for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.choice import PURPOSES, collective_choice
from ropewalk.collectives.nccl import Algorithm
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.fabric import Fabric
from ropewalk.planner._loads_kernel import largest_sums, sums_by_link
from ropewalk.planner.channels import CHANNELS, Channel, move_on
from ropewalk.planner.colours import Colours, TransferHops, hashed, mixed, rounded, summed
from ropewalk.ragged import ranges
from ropewalk.strategy.placement import DEFAULT_ORDER, Placement
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.graph import TaskKind
from ropewalk.task.kinds import Made
from ropewalk.task.lower.moves import STREAMS, Scope
from ropewalk.task.lower.roster import Roster
from ropewalk.task.step import Act, Step
from ropewalk.training.network import NetworkUse, expand_on

SENDS = (Channel.SEND_ON, Channel.SEND_BACK)
KEPT_PROBES = 1024
KEPT_RANKS = 1024
"""Ranks up to which a probe is kept: 250 bytes each."""


class Layout(NamedTuple):
    """How many ranks there are of every sort, and how they are laid over GPUs."""

    pipeline: int = 1
    data: int = 1
    expert: int = 1
    context: int = 1
    tensor: int = 1
    order: str = DEFAULT_ORDER
    folded: bool = False
    """Are experts spread over tensor and context ranks too?"""

    @property
    def strategy(self) -> Strategy:
        return Strategy(
            data=self.data, tensor=self.tensor, pipeline=self.pipeline, expert=self.expert, context=self.context,
            fold_experts=self.folded,
        )  # fmt: skip

    @property
    def expert_copies(self) -> int:
        """Ranks that hold the same experts."""
        return self.strategy.expert_replicas

    def channels(self, *, experts: bool, tables: bool, tied: bool, heads: bool) -> list[Channel]:
        """What ranks communicate for in this layout of a model that has experts, tables, a tied embedding.

        `heads`: may context ranks exchange them?
        """
        replicas, copies = self.data * self.context, self.expert_copies
        wanted = {
            Channel.TENSOR_REDUCE: self.tensor > 1, Channel.TENSOR_GATHER: self.tensor > 1,
            Channel.TENSOR_SCATTER: self.tensor > 1,
            Channel.CONTEXT_GATHER: self.context > 1, Channel.CONTEXT_SCATTER: self.context > 1,
            Channel.HEADS: heads and self.context > 1,
            Channel.EXPERT: experts and self.expert > 1, Channel.TABLES: tables and self.data > 1,
            Channel.DATA_REDUCE: replicas > 1, Channel.DATA_SCATTER: replicas > 1, Channel.DATA_GATHER: replicas > 1,
            Channel.EXPERT_REDUCE: experts and copies > 1,
            Channel.EXPERT_SCATTER: experts and copies > 1,
            Channel.EXPERT_GATHER: experts and copies > 1,
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


def layout_costs(
    layout: Layout,
    channels: Collection[Channel],
    fabric: Fabric,
    use: NetworkUse,
    *,
    in_step: bool = True,
    made: Made | None = None,
) -> LayoutCosts:
    """Write one byte of everything out, route it, and see what it takes.

    Unless copies run `in_step`, one of them may be faster than all together, whatever the symmetry of the network.
    """
    written = _probe(layout, channels)
    if not written.sort_of_operation.size:
        seconds = np.zeros((layout.pipeline, CHANNELS, 3))
        return LayoutCosts(seconds, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), True)
    choice = collective_choice(use.named())
    if not any(COLLECTIVES[choice.name_for(purpose)].chooses for purpose in PURPOSES):
        return _costs_of(written, layout, fabric, use, in_step=in_step, made=made)
    # Whatever a library chooses for a size takes no less than the least that any of its algorithms takes.
    several = [
        _costs_of(written, layout, fabric, use, in_step=in_step, made=made, least=one)
        for one in (Algorithm.RING, *_others({move_on(channel).act for channel in channels}))
    ]
    seconds = np.minimum.reduce([one.seconds for one in several])
    same = all(np.array_equal(one.seconds[..., 1:], seconds[..., 1:]) for one in several)
    terms = (several[0].term_start, several[0].term, several[0].load)
    if not same:
        terms = np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return LayoutCosts(seconds, *terms, all(one.symmetric for one in several))


def _others(acts: Collection[Act]) -> Iterator[Algorithm]:
    """What a library may run for some of these acts in place of rings."""
    if Act.ALL_REDUCE in acts:
        yield from (Algorithm.TREE, Algorithm.NVLS)
    if {Act.ALL_GATHER, Act.REDUCE_SCATTER} & set(acts):
        yield Algorithm.PAT


def _costs_of(
    written: _Probe, layout: Layout, fabric: Fabric, use: NetworkUse, *, in_step: bool, made: Made | None,
    least: Algorithm | None = None,
) -> LayoutCosts:  # fmt: skip
    seconds = np.zeros((layout.pipeline, CHANNELS, 3))
    expansion, routes = expand_on(written.step, fabric, use, made, least).routed(use.router(fabric))
    graph = expansion.graph
    task = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    row = routes.rows_of(graph, task)
    operation = expansion.operation_of_task[task].astype(np.int64)
    start, link, share = routes.usage()
    many = np.diff(start)[row]
    hop_task = np.repeat(np.arange(len(task)), many)
    hop = ranges(start[row], many)
    hop_link = link[hop].astype(np.int64)
    load = share[hop] * graph.amount[task][hop_task] / fabric.bandwidth[hop_link]
    waiting = graph.start_up[task] + routes.latency()[row]
    own = mixed(hashed(rounded(graph.rate_cap[task])), hashed(rounded(waiting)))
    hops = TransferHops(hop_task, hop_link, load)
    colours = Colours(written.step, written.sort_of_operation, written.stage_of_rank, operation, own, hops)
    together = colours.simultaneous()
    sort, links = written.sort_of_operation, fabric.links
    alone = np.maximum(
        _most(operation, graph.amount[task] / graph.rate_cap[task], len(sort)),
        largest_sums(operation[hop_task], hop_link, load, links, len(sort)),
    )
    begins = np.full(len(sort), np.inf)
    np.minimum.at(begins, operation, waiting)
    column = seconds.reshape(-1, 3)
    used = np.unique(sort)
    column[used, 0] = _least(sort, begins, len(column))[used]
    column[used, 1] = _least(sort, alone, len(column))[used]
    column[used, 2] = np.maximum(
        largest_sums(sort[operation[hop_task]], hop_link, load, links, len(column)), _most(sort, alone, len(column))
    )[used]
    if in_step:
        column[together, 1] = column[together, 2]
    terms = _terms(sort[operation[hop_task]], hop_link, load, links)
    return LayoutCosts(seconds, *terms, in_step and bool(together.size == used.size))


def _probe(layout: Layout, channels: Collection[Channel]) -> _Probe:
    """What is the same on every network is written once: a planner asks about many, one after the other."""
    ranks = layout.pipeline * layout.data * layout.context * layout.tensor
    return (_kept_probe if ranks <= KEPT_RANKS else _Probe)(layout, tuple(channels))


class _Probe:
    """One byte of everything that the ranks of every stage communicate for."""

    def __init__(self, layout: Layout, channels: Collection[Channel]) -> None:
        roster = Roster(Placement(layout.strategy, layout.order))
        stages = range(layout.pipeline)
        groups: list[NDArray[np.int32]] = []
        first_group: dict[tuple[Scope, int], tuple[int, int]] = {}
        columns: list[tuple[NDArray[np.integer], ...]] = []
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
            (np.concatenate([np.asarray(row[at], np.int64) for row in columns]) if columns else np.zeros(0, int))
            for at in range(6)
        )
        many = len(act)
        self.sort_of_operation: Ints = sort_of.astype(np.int64)
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


_kept_probe = lru_cache(maxsize=KEPT_PROBES)(_Probe)


def _way(channel: Channel) -> int:
    return 1 if channel is Channel.SEND_ON else -1


def _most(at: Ints, values: Floats, many: int) -> Floats:
    found = np.zeros(many)
    np.maximum.at(found, at, values)
    return found


def _least(at: Ints, values: Floats, many: int) -> Floats:
    found = np.full(many, np.inf)
    np.minimum.at(found, at, values)
    return found


def _terms(sort: Ints, link: Ints, load: Floats, links: int) -> tuple[Ints, Ints, Floats]:
    """By link what each sort of operation puts on it per byte; of links that do the same, one."""
    start, term, value = sums_by_link(sort, link, load, links)
    of_link = np.repeat(np.arange(links), np.diff(start))
    same = summed(of_link, mixed(hashed(term), hashed(rounded(value))), links)
    _, keep = np.unique(same, return_index=True)
    chosen = np.zeros(links, np.bool_)
    chosen[keep] = True
    kept = np.flatnonzero(chosen & (np.diff(start) > 0))
    many = np.diff(start)[kept]
    into = ranges(start[kept], many)
    return np.concatenate([[0], np.cumsum(many)]).astype(np.int64), term[into], value[into]
