"""Where every layer sits: the per-layer strategies that a search over servers chooses among.

A `Seating` is what a search moves about: the servers of every layer. Servers are numbered 0 … n-1 and work as one (a
server's GPUs share its part of a layer among themselves). As a `Strategy` it has one part for each layer and the grain
of a server; `strategy_of` and `seating_of` turn one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.order import Order
from ropewalk.strategy.part import Manner as Manner
from ropewalk.strategy.part import Part
from ropewalk.strategy.strategy import SERVER, Strategy


@dataclass(frozen=True)
class Seat:
    """The servers of a layer, in the order in which they take their parts."""

    servers: tuple[int, ...]
    manner: Manner = Manner.SAMPLE

    @property
    def degree(self) -> int:
        return len(self.servers)


@dataclass(frozen=True)
class Seating:
    """A seat for every layer of a workload, in the order of its layers.

    >>> Seating(4, (Seat((0, 1, 2, 3)), Seat((2,), Manner.PINNED))).seats[1].degree
    1
    """

    servers: int
    seats: tuple[Seat, ...]

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "seating")
        for number, seat in enumerate(self.seats):
            if not seat.servers or len(set(seat.servers)) != seat.degree:
                findings.add(f"layer {number} is on no server, or twice on one: name each of its servers once")
            if any(not 0 <= server < self.servers for server in seat.servers):
                findings.add(f"layer {number} is on a server that does not exist: use 0…{self.servers - 1}")
            if seat.manner is Manner.PINNED and seat.degree != 1:
                findings.add(f"layer {number} is pinned to {seat.degree} servers: pin it to one")
        findings.raise_if_any()


def coset(servers: int, degree: int, start: int = 0) -> tuple[int, ...]:
    """Every (servers/degree)-th server from `start` on: the places on which regular rings of a group fit.

    >>> coset(12, 4, 1)
    (1, 4, 7, 10)
    """
    if degree < 1 or servers % degree:
        raise StrategyError(f"{degree} of {servers} servers are not a coset: give a degree that divides {servers}")
    stride = servers // degree
    return tuple((start + number * stride) % servers for number in range(degree))


def strategy_of(
    seating: Seating, batch: int, micro_batches: int = 1, optimiser: str = "sgd", bucket_bytes: float = 0.0
) -> Strategy:
    """The strategy that a seating is; `batch` counts the samples of a whole step.

    Gradients are summed layer by layer, or joined within a group until they are `bucket_bytes` large.

    >>> strategy_of(Seating(4, (Seat((0, 1, 2, 3)), Seat((2,), Manner.PINNED))), 64).said()
    '4 servers, seats of 4 and 1, 1 micro-batch of 64'
    """
    parts = tuple(Part(at, at, seat.servers, manner=seat.manner) for at, seat in enumerate(seating.seats))
    return Strategy(
        parts=parts,
        workers=seating.servers,
        grain=SERVER,
        schedule="gpipe",
        order=Order(fusion=bucket_bytes),
        micro_batch=batch // micro_batches,
        micro_batches=micro_batches,
        optimiser=optimiser,
    )


def seating_of(strategy: Strategy) -> Seating:
    """The seats of a strategy per server, one for each layer in order."""
    findings = Findings(StrategyError, "strategy per server")
    for number, one in enumerate(strategy.parts):
        if (one.first, one.last) != (number, number):
            findings.add(f"part {number} holds layers {one.first} to {one.last}: give every layer a part, in order")
        if one.tensor != 1:
            findings.add(
                f"part {number} has tensor {one.tensor}: set its manner instead, which says how servers share the layer"
            )
    findings.raise_if_any()
    return Seating(strategy.ranks, tuple(map(seat_of, strategy.parts)))


def seat_of(one: Part) -> Seat:
    """The servers of a part."""
    return Seat(one.workers, one.manner)
