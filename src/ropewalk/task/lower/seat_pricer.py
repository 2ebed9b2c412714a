"""Layers in seats, priced once: what a search over seats asks for again and again.

Nothing is priced differently here: a layer on the servers of a seat is split as its share (`strategy.shares`),
takes what its moves take (`moves`), is reduced as one bucket (`passes`) and needs the memory of a model of one layer
(`strategy.memory`). All of that depends on how many servers there are and how they share the layer, not on which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.memory import OPTIMISER_BYTES, memory_of_layer, updated, usable_bytes
from ropewalk.strategy.order import Order
from ropewalk.strategy.part import Manner, Part
from ropewalk.strategy.part_checks import uneven_samples
from ropewalk.strategy.prices import KeptPrices, Pace, Prices
from ropewalk.strategy.seating import Seat, seat_of
from ropewalk.strategy.server import Server
from ropewalk.strategy.shares import Share, share_of
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.task.lower.moves import STREAM, Move, Scope, backward_moves, forward_moves
from ropewalk.task.lower.passes import Leg, Passes, buckets
from ropewalk.task.step import Act
from ropewalk.timetable.passes import Pass
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class SeatWork:
    """The work of one server of a seat on one layer; moves are those of one micro-batch."""

    view: Strategy
    """The degrees that the servers see."""
    share: Share
    """Of one GPU."""
    forward: tuple[Move, ...]
    backward: tuple[Move, ...]
    reduces: tuple[Move, ...]
    """Gradients of the layer, by themselves."""
    update_s: float
    held_bytes: float
    """On one GPU: weights, gradients, the optimiser's state and what is kept between the two passes."""

    @property
    def sum_bytes(self) -> float:
        """Weights that all servers of the seat hold alike: bytes of one gradient all-reduce per step."""
        return sum(move.amount for move in self.reduces)

    @cached_property
    def alone(self) -> Passes:
        """The layer as a piece of a model, its gradients reduced by themselves."""
        return self.passes(self.reduces)

    def passes(self, reduces: tuple[Move, ...]) -> Passes:
        """The layer as a piece of a model of its own, behind whose last backward pass these gradients are reduced."""
        plain: dict[Pass, tuple[Leg, ...]] = {Pass.FORWARD: (Leg(self.forward),), Pass.BACKWARD: (Leg(self.backward),)}
        return Passes(plain, {Pass.BACKWARD: (Leg(self.backward, reduces=reduces),)})


def seconds_in(moves: Iterable[Move]) -> float:
    """Seconds of computation."""
    return sum(move.amount for move in moves if move.act is Act.COMPUTE)


def met_in(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Collectives of all servers of the seat, in the middle of a layer."""
    return tuple(move for move in moves if move.act is not Act.COMPUTE)


@dataclass
class SeatPricer:
    """Prices layers in seats, each combination once.

    `batch` counts the samples of all servers in a step; they come in `micro_batches` equal parts, all forward passes
    before all backward passes.
    """

    workload: Workload
    prices: Prices
    batch: int
    server: Server = field(default_factory=Server)
    micro_batches: int = 1
    optimiser: str = "sgd"

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, f"seats of {self.workload.name}")
        if self.batch < 1 or self.micro_batches < 1 or self.batch % max(self.micro_batches, 1):
            findings.add(
                f"{self.batch} samples do not divide into {self.micro_batches} equal micro-batches: give a divisor"
            )
        if self.optimiser not in OPTIMISER_BYTES:
            findings.add(f"there is no optimiser {self.optimiser!r}: use one of {', '.join(OPTIMISER_BYTES)}")
        findings.raise_if_any()
        self.pace = Pace(KeptPrices(self.prices), None)
        self._strategy = Strategy(
            grain=SERVER, schedule="gpipe", order=Order(fusion=0.0), micro_batch=self.batch // self.micro_batches,
            micro_batches=self.micro_batches, optimiser=self.optimiser,
        )  # fmt: skip
        self._known: dict[tuple[int, Manner, int], SeatWork] = {}
        self._sized: dict[int, Workload] = {}

    @property
    def element_bytes(self) -> float:
        return self.prices.precision.element_bytes

    @property
    def room_bytes(self) -> float:
        """Bytes of a GPU that layers may hold together."""
        return usable_bytes(self.server.memory_bytes)

    def output_bytes(self, layer: int) -> float:
        """Bytes that a layer hands to each layer that reads it, over the whole batch."""
        return self.workload.layers[layer].output_elements * self.element_bytes * self.batch / self.workload.batch

    def work(self, layer: int, seat: Seat) -> SeatWork:
        """What each server of the seat does."""
        key = layer, seat.manner, seat.degree
        if key not in self._known:
            self._known[key] = self._priced(layer, Part(layer, layer, seat.servers, manner=seat.manner))
        return self._known[key]

    def _priced(self, number: int, one: Part) -> SeatWork:
        for finding in uneven_samples(one, self._strategy.micro_batch, self.workload.layers[number].name):
            raise StrategyError(finding)
        view = self._strategy.on_part(one, self.server.gpus)
        share = share_of(self.at(view.micro_batch).layers[number], view, self.server, one.manner)
        held = memory_of_layer(view, share, self.pace.listed.numbers)
        # A layer without operators takes no time, but what it hands on waits for what it reads.
        idle = Move(Act.COMPUTE, Scope.RANK, 0.0, STREAM["compute"], share.layer.name)
        return SeatWork(
            view=view,
            share=share,
            forward=tuple(forward_moves(share, view, self.pace)) or (idle,),
            backward=tuple(backward_moves(share, view, self.pace)) or (idle,),
            reduces=buckets((number,), {number: share}, view, self.element_bytes).get(number, ()),
            update_s=self.pace.update(*updated(view, [share]), self.optimiser),
            held_bytes=float((held.weights + held.gradients + held.optimiser + held.activations)[0]),
        )

    def pieces(self, strategy: Strategy) -> tuple[tuple[Share, ...], list[Passes]]:
        """The share and the passes of every layer of a seating; buckets join layers of the same servers."""
        works = [self.work(at, seat_of(one)) for at, one in enumerate(strategy.parts)]
        shares = tuple(work.share for work in works)
        if not strategy.order.bucket_bytes:
            return shares, [work.alone for work in works]
        together: dict[tuple[int, ...], list[int]] = {}
        for at in (at for at, work in enumerate(works) if work.reduces):
            together.setdefault(strategy.parts[at].workers, []).append(at)
        joined: dict[int, tuple[Move, ...]] = {}
        for layers in together.values():
            # Experts that are spread over all servers of a seat are reduced over none.
            first = works[layers[0]].view
            view = replace(first, order=strategy.order, expert=first.data)
            joined |= buckets(layers, shares, view, self.element_bytes)
        return shares, [work.passes(joined.get(at, ())) for at, work in enumerate(works)]

    def at(self, samples: int) -> Workload:
        """The workload for so many samples."""
        if samples not in self._sized:
            self._sized[samples] = self.workload.at_batch(samples)
        return self._sized[samples]


def seat_pricer(workload: Workload, strategy: Strategy, prices: Prices | KeptPrices, server: Server) -> SeatPricer:
    """Prices for the seats of one strategy."""
    alone = prices.prices if isinstance(prices, KeptPrices) else prices
    batch, many = strategy.global_batch, strategy.micro_batches
    return SeatPricer(workload, alone, batch, server, many, strategy.optimiser)
