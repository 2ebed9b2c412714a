"""Layers in seats, priced once: what a search over seats asks for again and again.

Nothing is priced differently here: a layer on the servers of a seat is split as its share (`strategy.shares`),
takes what its moves take (`moves`), is reduced as one bucket (`passes`) and needs the memory of a model of one layer
(`strategy.memory`). All of that depends on how many servers there are and how they share the layer, not on which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.memory import OPTIMISER_BYTES, memory_of_layer, updated, usable_bytes
from ropewalk.strategy.order import Order
from ropewalk.strategy.part import Manner, Part
from ropewalk.strategy.part_checks import uneven_samples
from ropewalk.strategy.prices import Pace, PriceList, Prices
from ropewalk.strategy.seating import Seat
from ropewalk.strategy.server import Server
from ropewalk.strategy.shares import Share, share_of
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.task.lower.moves import Move, backward_moves, forward_moves
from ropewalk.task.lower.passes import buckets
from ropewalk.task.step import Act
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class SeatWork:
    """The work of one server of a seat on one layer; moves are those of one micro-batch."""

    share: Share
    """Of one GPU."""
    forward: tuple[Move, ...]
    backward: tuple[Move, ...]
    update_s: float
    sum_bytes: float
    """Weights that all servers of the seat hold alike: bytes of one gradient all-reduce per step."""
    held_bytes: float
    """On one GPU: weights, gradients, the optimiser's state and what is kept between the two passes."""


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
                f"{self.batch} samples do not fall into {self.micro_batches} equal micro-batches: give a divisor"
            )
        if self.optimiser not in OPTIMISER_BYTES:
            findings.add(f"there is no optimiser {self.optimiser!r}: use one of {', '.join(OPTIMISER_BYTES)}")
        findings.raise_if_any()
        self.pace = Pace(PriceList(self.prices), None)
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
        share = share_of(self._at(view.micro_batch).layers[number], view, self.server, one.manner)
        reduces = buckets(range(1), (share,), view, self.element_bytes)
        held = memory_of_layer(view, share, self.element_bytes)
        return SeatWork(
            share=share,
            forward=tuple(forward_moves(share, view, self.pace)),
            backward=tuple(backward_moves(share, view, self.pace)),
            update_s=self.pace.update(*updated(view, [share]), self.optimiser),
            sum_bytes=sum(move.amount for moves in reduces.values() for move in moves),
            held_bytes=float((held.weights + held.gradients + held.optimiser + held.activations)[0]),
        )

    def _at(self, samples: int) -> Workload:
        if samples not in self._sized:
            self._sized[samples] = self.workload.at_batch(samples)
        return self._sized[samples]
