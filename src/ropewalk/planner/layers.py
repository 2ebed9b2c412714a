"""What every layer costs and holds on one rank, for every manner of splitting it: the columns that kernels read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.device.work import Work
from ropewalk.planner.channels import IN_LAYERS, channel_of
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS
from ropewalk.strategy.shares import Share, computed_again, kept_bytes, shares_of, working_bytes
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import (
    Move,
    again_moves,
    backward_moves,
    forward_moves,
    input_moves,
    recompute_moves,
    weight_moves,
)
from ropewalk.task.lower.paced import again, away_s, launched
from ropewalk.task.step import Act
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.operator import GATHER, RING, part
from ropewalk.workload.workload import Workload

MANY = 2**20
"""Ranks that no server has."""


class Splitting(NamedTuple):
    """Everything about a strategy that changes what a rank does for one micro-batch of a layer."""

    micro_batch: int
    tensor: int = 1
    sequence: bool = False
    context: int = 1
    expert: int = 1
    data: int = 1
    """Counts where embedding tables are spread over data ranks, otherwise 1."""
    shared_out: int = 0
    """Counts where it matters that data ranks share weights out (ZeRO-3): 1 those of all ranks, 2 experts too, 3
    experts alone."""
    across: bool = False
    """Are these ranks in several servers?"""
    exchange: str = GATHER
    """How the ranks of a sequence meet in attention."""
    folded: bool = False
    """Are experts spread over tensor and context ranks too?"""

    def strategy(self, usual: Strategy | None = None) -> Strategy:
        """A strategy that splits layers like this."""
        return replace(
            usual or Strategy(), data=self._folded_data if self.folded else self._data,
            tensor=self.tensor, sequence_parallel=self.sequence, context=self.context, expert=self.expert,
            micro_batch=self.micro_batch, zero=3 if self.shared_out else 0, context_exchange=self.exchange,
            fold_experts=self.folded,
        )  # fmt: skip

    @property
    def _data(self) -> int:
        """A number of data ranks that share weights out like this."""
        data, copies = max(self.data, self.expert), 1
        if self.shared_out == 2 and self.data == 1:
            copies = MANY if self.across else 1 if self.context > 1 else 2
        return data * copies

    @property
    def _folded_data(self) -> int:
        """The same where tensor and context ranks have experts of their own."""
        together = self.tensor * self.context
        if self.shared_out == 1:
            return self.expert // together
        if self.shared_out == 3:
            return 1
        if self.shared_out == 2:
            return self.expert * MANY if self.across else max(1 + (self.context == 1), part(2 * self.expert, together))
        return self.expert


class Seconds:
    """Columns of `LayerTable.seconds`: on the GPU, without pauses."""

    FORWARD, BACKWARD, INPUT, WEIGHT = range(4)
    AGAIN = 4
    """What is computed again, by kind of recomputation: three columns."""
    COUNT = 7


class LaunchColumn:
    """Columns of `LayerTable.launch`: seconds of the GPU and of the host, and in which tokens travel meanwhile."""

    FORWARD, BACKWARD, AGAIN = 0, 3, 6
    """Of each pass, then of what is computed again, by kind of recomputation: as many columns each as follow."""
    GPU, HOST, AWAY = range(3)
    EACH = 3
    WAITS = 15
    """Does the host wait for counts of tokens?"""
    COUNT = 16

    @classmethod
    def again(cls, kind: int) -> int:
        """Where the columns of a kind of recomputation begin."""
        return cls.AGAIN + cls.EACH * kind


class PassColumn:
    """Passes through a layer in `LayerTable.met` and `hidden`; behind `AGAIN` by kind of recomputation."""

    FORWARD, BACKWARD, AGAIN, INPUT = 0, 1, 2, 5
    MET, HIDDEN = 5, 6
    """How many there are in each: what is met for in a pass without gradients of weights is as in the whole one."""


class Hidden:
    """Columns of `LayerTable.hidden`: an exchange that runs beside a computation, and what waits for both."""

    SECONDS, BYTES, TIMES, CHANNEL, OTHER = range(5)
    """Of the computation; of the exchange, on which channel, and on which other one at the same time or -1."""
    COUNT = 5


MOST_HIDDEN = 3
"""Such exchanges of one pass of a layer that are timed: keys and values, tokens to experts and back. Where there are
more, the others are taken to be hidden: a bound stays one."""


class Held:
    """Columns of `LayerTable.held`."""

    DENSE, EXPERT, TABLE, TENSORS, TIED, EMBEDDING = range(6)
    """Parameters by who else has them; tensors; parameters of an embedding elsewhere; whether it is here."""
    KEPT, WORKING = 6, 9
    """Bytes of a micro-batch, by kind of recomputation: three columns each."""
    OUTPUT = 12
    """Elements handed to the next layer."""
    COST = 13
    """Seconds by which pipelines are balanced."""
    BLOCK = 14
    """Is it one of the layers that repeat?"""
    NARROW = 15
    """Parameters of which narrow copies are kept."""
    FROZEN, FROZEN_EXPERT, FROZEN_TIED = 16, 17, 18
    """Parameters that are never updated, those of experts, those of an embedding elsewhere."""
    NARROW_EXPERT = 19
    """Of the parameters of which narrow copies are kept, those of experts."""
    COUNT = 20


@dataclass(frozen=True, eq=False)
class LayerTable:
    """Rows by splitting and layer; kinds of recomputation are numbered as in `RECOMPUTE_OF_LAYERS`."""

    splittings: tuple[Splitting, ...]
    seconds: Floats
    launch: Floats
    held: Floats
    met: Floats
    """By splitting, layer, pass and channel: bytes that computation waits for, and how often."""
    hidden: Floats
    """By splitting, layer and pass: exchanges beside computations; none where `usual` and no splitting has any."""

    @property
    def layers(self) -> int:
        return int(self.seconds.shape[1])


def spreads_tables(workload: Workload) -> bool:
    """Does what a rank does depend on the number of data ranks?"""
    return any(
        isinstance(op, Exchange) and op.meeting is Meeting.TABLES for layer in workload.layers for op in layer.operators
    )


def repeating(workload: Workload) -> tuple[bool, ...]:
    """By layer: is it one of those that repeat?

    Blocks of a language model of the zoo are, whichever windows, experts or states they have; of other models the
    layer that there are most of.

    >>> from ropewalk.workload.zoo import build
    >>> repeating(build("gpt-oss-20b:layers=2", 1))
    (False, True, True, False)
    """
    layers = workload.layers
    blocks = tuple(layer.name.startswith(BLOCK_NAME) for layer in layers)
    if workload.sequence and any(blocks):
        return blocks
    counts = Counter(id(layer.operators) for layer in layers)
    most = max(layers, key=lambda layer: counts[id(layer.operators)])
    return tuple(layer.operators is most.operators for layer in layers)


BLOCK_NAME = "block "
"""What names of the blocks of a language model begin with."""


def layer_table(
    workload: Workload, splittings: tuple[Splitting, ...], prices: KeptPrices, usual: Strategy | None = None
) -> LayerTable:
    """The columns of every layer under every splitting; layers that are alike are priced once."""
    shape = len(splittings), len(workload.layers)
    ring = any(one.exchange == RING for one in splittings)
    most = MOST_HIDDEN if ring or (usual is not None and usual.shared_overlap) else 0
    table = LayerTable(
        splittings,
        np.zeros((*shape, Seconds.COUNT)),
        np.zeros((*shape, LaunchColumn.COUNT)),
        np.zeros((*shape, Held.COUNT)),
        np.zeros((*shape, PassColumn.MET, IN_LAYERS, 2)),
        np.zeros((*shape, PassColumn.HIDDEN, most, Hidden.COUNT)),
    )
    for row, splitting in enumerate(splittings):
        _fill(table, row, workload.at_batch(splitting.micro_batch), splitting, prices, usual)
    return table


def _fill(
    table: LayerTable, row: int, workload: Workload, splitting: Splitting, prices: KeptPrices, usual: Strategy | None
) -> None:
    shares = shares_of(workload, splitting.strategy(usual=usual))
    known: dict[tuple[int, int], int] = {}
    for at, share in enumerate(shares):
        alike = id(share.layer.operators), sum(share.read)
        first = known.setdefault(alike, at)
        if first != at:
            for columns in (table.seconds, table.launch, table.held, table.met, table.hidden):
                columns[row, at] = columns[row, first]
            continue
        variants = [replace(share, recompute=recompute) for recompute in RECOMPUTE_OF_LAYERS]
        _time(table, row, at, variants, splitting.strategy(usual=usual), prices)
        _hold(table.held[row, at], variants, prices)
    blocks = repeating(workload)
    tied = {size for share in shares for size in (share.tied, share.frozen_tied) if size}
    for at, share in enumerate(shares):
        table.held[row, at, Held.EMBEDDING] = bool(tied & set(share.embeddings))
        table.held[row, at, Held.BLOCK] = blocks[at]


def _time(table: LayerTable, row: int, at: int, variants: list[Share], strategy: Strategy, prices: KeptPrices) -> None:
    pace, share = Pace(prices), variants[0]
    seconds, launch = table.seconds[row, at], table.launch[row, at]
    met, hidden = table.met[row, at], table.hidden[row, at]
    forward, backward = forward_moves(share, strategy, pace), backward_moves(share, strategy, pace)
    inputs = input_moves(share, strategy, pace)
    seconds[Seconds.FORWARD], seconds[Seconds.BACKWARD] = _computed(forward), _computed(backward)
    seconds[Seconds.INPUT] = _computed(inputs)
    seconds[Seconds.WEIGHT] = _computed(weight_moves(share, strategy, pace))
    for of_pass, moves in ((PassColumn.FORWARD, forward), (PassColumn.BACKWARD, backward)):
        _count(met[of_pass], moves)
    for of_pass, moves in ((PassColumn.FORWARD, forward), (PassColumn.BACKWARD, backward), (PassColumn.INPUT, inputs)):
        _hide(hidden[of_pass], moves)
    host = launched(share, prices, forward, backward)
    _launch(launch, LaunchColumn.FORWARD, host.forward, host.forward_away_s)
    _launch(launch, LaunchColumn.BACKWARD, host.backward, host.backward_away_s)
    launch[LaunchColumn.WAITS] = host.waits
    for kind, variant in enumerate(variants):
        again_s = away_s(again_moves(variant, strategy, pace), share.split, prices.inside)
        _launch(launch, LaunchColumn.again(kind), again(variant, prices), again_s)
        moves = recompute_moves(variant, strategy, pace) if variant.recompute == "full" else []
        seconds[Seconds.AGAIN + kind] = _computed(moves) if moves else pace.forward(computed_again(variant))
        _count(met[PassColumn.AGAIN + kind], moves)
        _hide(hidden[PassColumn.AGAIN + kind], moves)
    table.held[row, at, Held.COST] = (host.forward + host.backward).seconds


def _launch(launch: Floats, at: int, work: Work, exchanged_s: float) -> None:
    launch[at : at + LaunchColumn.EACH] = work.gpu_s, work.host_s, exchanged_s


def _computed(moves: list[Move]) -> float:
    return sum(move.amount for move in moves if move.act is Act.COMPUTE)


def _count(met: Floats, moves: list[Move]) -> None:
    for move in moves:
        if move.act is not Act.COMPUTE and not move.beside:
            met[channel_of(move)] += move.amount, move.repeats


def _hide(hidden: Floats, moves: list[Move]) -> None:
    """Write down what runs beside the computation behind it: one exchange, or two of as many bytes."""
    running: list[Move] = []
    found = []
    for move in moves:
        if move.beside:
            running.append(move)
        elif running:
            other = int(channel_of(running[1])) if len(running) > 1 else -1
            if move.act is Act.COMPUTE:
                first = running[0]
                found.append((move.amount, first.amount, first.repeats, int(channel_of(first)), other))
            running = []
    hidden[: len(found)] = found[: len(hidden)] if found else 0.0


def _hold(held: Floats, variants: list[Share], prices: KeptPrices) -> None:
    share, numbers = variants[0], prices.numbers
    held[Held.DENSE], held[Held.EXPERT] = share.parameters, share.expert_parameters
    held[Held.TABLE], held[Held.TENSORS] = share.table_parameters, share.tensors
    held[Held.TIED], held[Held.NARROW] = share.tied, share.narrow
    held[Held.FROZEN], held[Held.FROZEN_EXPERT] = share.frozen, share.frozen_experts
    held[Held.FROZEN_TIED], held[Held.NARROW_EXPERT] = share.frozen_tied, share.narrow_experts
    for kind, variant in enumerate(variants):
        held[Held.KEPT + kind] = kept_bytes(variant, numbers)
        held[Held.WORKING + kind] = working_bytes(variant, numbers)
    held[Held.OUTPUT] = share.layer.output_elements
