"""A recommendation model small enough to count by hand, prices by arithmetic, and networks for a few servers."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ropewalk.codesign.estimate import SeatingEstimate
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.network import StepNetwork, one_ring
from ropewalk.codesign.seats import space_of
from ropewalk.fabric import Circulant, IdealSwitch
from ropewalk.fabric.wiring import regular_rings
from ropewalk.routing import shortest
from ropewalk.strategy.between import Parts
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.seating import Manner, Seat, Seating, strategy_of
from ropewalk.strategy.server import Server
from ropewalk.task.lower import lower
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.task.step import Step
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.experts import Experts
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.operator import Role
from ropewalk.workload.workload import Layer, Workload


@dataclass(frozen=True)
class Wide:
    element_bytes: float = 4.0


@dataclass(frozen=True)
class FlopPrices:
    """A microsecond for so many operations, twice that backwards, a nanosecond for each updated parameter."""

    flops_per_s: float = 1e9
    precision: Wide = field(default_factory=Wide)

    def forward(self, operators, /):
        return sum(kernel.flops for operator in operators for kernel in operator.forward()) / self.flops_per_s

    def backward(self, operators, /):
        return sum(kernel.flops for operator in operators for kernel in operator.backward()) / self.flops_per_s

    def weight(self, operators, /):
        return sum(kernel.flops for operator in operators for kernel in operator.weight_backward()) / self.flops_per_s

    def update(self, parameters, tensors, optimiser, /):
        return parameters * 1e-9


def recommender(batch: int = 8, tables: int = 2, width: int = 4, hidden: int = 16) -> Workload:
    """Tables and a linear layer, joined, and a linear layer on top."""
    looked = [
        Layer(f"table {at}", (SparseTable(batch, 2, 64, width),), batch * width, (), "table") for at in range(tables)
    ]
    joint = tables * width + hidden
    layers = (
        *looked,
        Layer("bottom", (Linear(batch, 8, hidden, first=True), Pointwise(batch * hidden)), batch * hidden, (), "dense"),
        Layer("join", (Pointwise(batch * joint),), batch * joint, tuple(range(tables + 1)), "join"),
        Layer("top", (Linear(batch, joint, 8),), batch * 8, (tables + 1,), "dense"),
    )
    return Workload("recommender", layers, batch, resize=lambda samples: recommender(samples, tables, width, hidden))


def stacked(batch: int = 8, widths: tuple[int, ...] = (16, 32, 8)) -> Workload:
    """Linear layers on top of each other."""
    layers = tuple(
        Layer(f"dense {at}", (Linear(batch, a, b),), batch * b, (at - 1,) if at else (), "dense")
        for at, (a, b) in enumerate(pairwise(widths))
    )
    return Workload("stack", layers, batch, resize=lambda samples: stacked(samples, widths))


def with_experts(batch: int = 8, experts: int = 4, hidden: int = 8) -> Workload:
    """A linear layer, then a layer whose samples travel to experts and back."""
    mixed = (
        Linear(batch, hidden, hidden),
        Exchange(Meeting.DISPATCH, batch * hidden),
        Experts(batch, experts, hidden, 4),
        Exchange(Meeting.COMBINE, batch * hidden),
        Linear(batch, hidden, hidden),
    )
    layers = (
        Layer("dense", (Linear(batch, 8, hidden, first=True),), batch * hidden, (), "dense"),
        Layer("mixture", mixed, batch * hidden, (0,), "mixture"),
    )
    return Workload("experts", layers, batch, resize=lambda samples: with_experts(samples, experts, hidden))


def feed_forward(batch: int = 8, hidden: int = 8, blocks: int = 2) -> Workload:
    """Blocks of two linear layers that Megatron splits, the first by columns and the second by rows."""
    layers = tuple(
        Layer(
            f"block {at}",
            (
                Exchange(Meeting.ENTER, batch * hidden),
                Linear(batch, hidden, 4 * hidden, role=Role.COLUMNS),
                Linear(batch, 4 * hidden, hidden, role=Role.ROWS),
                Exchange(Meeting.LEAVE, batch * hidden),
            ),
            batch * hidden,
            (at - 1,) if at else (),
            "block",
        )
        for at in range(blocks)
    )
    return Workload("blocks", layers, batch, resize=lambda samples: feed_forward(samples, hidden, blocks))


def priced(workload: Workload, batch: int = 48, *, gpus: int = 1, memory: float = np.inf, **rest) -> SeatPricer:
    return SeatPricer(workload, FlopPrices(), batch, Server(gpus, 1e9, memory), **rest)


def lowered(pricer: SeatPricer, seating: Seating, bucket_bytes: float = 0.0) -> Step:
    """The step of a seating."""
    strategy = strategy_of(seating, pricer.batch, pricer.micro_batches, pricer.optimiser, bucket_bytes)
    return lower(pricer.workload, strategy, Placement(strategy), pricer)


def switch(servers: int, bandwidth: float = 1e6, latency: float = 1e-6) -> StepNetwork:
    return StepNetwork("switch", IdealSwitch(servers, bandwidth, latency).build(), shortest, one_ring)


def circle(servers: int, bandwidth: float = 1e6, latency: float = 1e-6) -> StepNetwork:
    fabric = Circulant(servers, (1,), bandwidth, latency).build()
    return StepNetwork("circle", fabric, shortest, lambda size: regular_rings(size, (1,), both_ways=True))


def tiny_space(workload: Workload, servers: int, **rest):
    pricer = priced(workload)
    return pricer, space_of(pricer, servers, **rest)


def overlap_by_sample(source: Seat, reader: Seat, samples: int, columns: int) -> dict[tuple[int, int], float]:
    """What moves, counted number by number: (sample, column) pairs that one server has and another needs."""

    def has(seat: Seat, place: int, is_reader: bool) -> set[tuple[int, int]]:
        rows, cols = range(samples), range(columns)
        if seat.manner in (Manner.SAMPLE, Manner.EXPERT):
            each = samples // seat.degree
            rows = range(place * each, (place + 1) * each)
        if seat.manner is Manner.COLUMNS and not is_reader:
            each = columns // seat.degree
            cols = range(place * each, (place + 1) * each)
        return {(row, col) for row in rows for col in cols}

    moved = {}
    for i, a in enumerate(source.servers):
        for j, b in enumerate(reader.servers):
            count = len(has(source, i, False) & has(reader, j, True))
            if source.manner is Manner.TENSOR:
                # All of them have all of it: each sends an equal part to whoever has none.
                count = 0 if b in source.servers else count / source.degree
            if a != b and count:
                moved[a, b] = count
    return moved


def as_dict(parts: Parts, tensor_bytes: float) -> dict[tuple[int, int], float]:
    sizes = parts.bytes_of(tensor_bytes).tolist()
    return dict(zip(zip(parts.src.tolist(), parts.dst.tolist(), strict=True), sizes, strict=True))


def recommender_on_four(bandwidth: float = 1e6, network=switch):
    """A setting for chains that other processes can import: a table and three layers on four servers."""
    pricer, space = tiny_space(recommender(tables=1), 4)
    return space, SeatingEstimate(pricer, LinkLoads(network(4, bandwidth), 4), space.seats, 4)
