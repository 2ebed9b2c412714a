"""What one server computes, holds and sums of a layer, by the manner of its seat.

A server with g GPUs works as one. Its GPUs share its samples equally and have a copy each of its weights, which they
sum among themselves at the end of the layer's backward pass: 2(g-1)/g of the weights over the bandwidth inside the
server, added to the backward pass (FlexNet, the simulator of the TopoOpt study, does the same). Pinned layers and
sparse tables are the exception: they are spread over the GPUs of the server, so they need no such sum and are held
once. What the GPUs of a server then pass to each other of looked-up rows is left out.

A layer's update is priced by itself; sparse tables are updated in their backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ropewalk.collectives.act import Act
from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.columns import cut, split_by_tensor
from ropewalk.strategy.memory import FRAGMENTATION, OPTIMISER_BYTES, WORKSPACE_BYTES, Memory, state_bytes
from ropewalk.strategy.prices import Prices
from ropewalk.strategy.seating import Manner, Seat, Seating
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.operator import Operator, Split, part
from ropewalk.workload.workload import Layer, Workload


@dataclass(frozen=True)
class Server:
    """One of n equal servers."""

    gpus: int = 4
    inside_bandwidth: float = 300e9
    """Bytes/s that a GPU sends to the others of its server; 300 GB/s is the NVLink of an A100."""
    memory_bytes: float = math.inf
    """Of one GPU; infinite: memory is not checked."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "server")
        if self.gpus < 1:
            findings.add(f"it has {self.gpus} GPUs: give 1 or more")
        if not self.inside_bandwidth > 0:
            findings.add(f"its GPUs exchange {self.inside_bandwidth} bytes/s: give a bandwidth above 0")
        if not self.memory_bytes > 0:
            findings.add(f"its GPUs have {self.memory_bytes} bytes of memory: give a size above 0")
        findings.raise_if_any()


TRAVEL = {Meeting.DISPATCH: Act.ALL_TO_ALL, Meeting.COMBINE: Act.ALL_TO_ALL}
MEETINGS: dict[Manner, tuple[Mapping[Meeting, Act], Mapping[Meeting, Act]]] = {
    Manner.EXPERT: (TRAVEL, TRAVEL),
    Manner.TENSOR: ({Meeting.LEAVE: Act.ALL_REDUCE}, {Meeting.ENTER: Act.ALL_REDUCE}),
}
"""Where the servers of a seat meet in the forward and in the backward pass, and what they do there."""


class Met(NamedTuple):
    """A collective of all servers of a seat, in the middle of a layer."""

    act: Act
    size_bytes: float
    """As in a `Step`: of an all-to-all what a server sends to all of them, itself included."""


@dataclass(frozen=True)
class Held:
    """Bytes that one GPU holds of a layer."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    """What is kept between the two passes."""

    @property
    def bytes(self) -> float:
        return self.weights + self.gradients + self.optimiser + self.activations


@dataclass(frozen=True)
class SeatWork:
    """The work of one server of a seat on one layer; seconds and exchanged bytes are those of one micro-batch."""

    forward_s: tuple[float, ...]
    """Stretches between which the servers of the seat meet: one, unless samples travel to experts or results are
    summed."""
    backward_s: tuple[float, ...]
    """In the order in which they run: the end of the forward pass first."""
    forward_met: tuple[Met, ...]
    """Between the stretches of the forward pass."""
    backward_met: tuple[Met, ...]
    update_s: float
    sum_bytes: float
    """Weights that all servers of the seat hold alike: bytes of one gradient sum a step."""
    held: Held
    """On one GPU."""

    @property
    def held_bytes(self) -> float:
        return self.held.bytes


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
        self._known: dict[tuple[int, Manner, int], SeatWork] = {}
        self._sized: dict[int, Workload] = {}

    @property
    def element_bytes(self) -> float:
        return self.prices.precision.element_bytes

    def output_bytes(self, layer: int) -> float:
        """Bytes that a layer hands to each layer that reads it, over the whole batch."""
        return self.workload.layers[layer].output_elements * self.element_bytes * self.batch / self.workload.batch

    def work(self, layer: int, seat: Seat) -> SeatWork:
        """What each server of the seat does."""
        key = layer, seat.manner, seat.degree
        if key not in self._known:
            self._known[key] = self._priced(layer, seat)
        return self._known[key]

    def _priced(self, number: int, seat: Seat) -> SeatWork:
        samples = self._samples_of_gpu(number, seat)
        layer = self._at(samples).layers[number]
        operators = layer.operators
        if seat.manner is Manner.COLUMNS:
            operators = cut(layer, seat.degree)
        elif seat.manner is Manner.TENSOR:
            operators = split_by_tensor(layer, seat.degree, samples).operators
        elif seat.manner is Manner.EXPERT:
            operators = layer.split(Split(expert=seat.degree)).operators
        there, back = MEETINGS.get(seat.manner, ({}, {})) if seat.degree > 1 else ({}, {})
        stretches, met = self._stretches(operators, there)
        returning, met_back = self._stretches(operators[::-1], back)
        copied = (
            () if seat.manner is Manner.PINNED else tuple(op for op in operators if not isinstance(op, SparseTable))
        )
        copied_bytes = _parameters(copied) * self.element_bytes
        inside = 2 * copied_bytes * (self.server.gpus - 1) / self.server.gpus / self.server.inside_bandwidth
        backward = [self.prices.backward(stretch[::-1]) for stretch in returning]
        return SeatWork(
            forward_s=tuple(self.prices.forward(stretch) for stretch in stretches),
            # The sum over the GPUs of a server is paid once a step: an equal part in every micro-batch.
            backward_s=(*backward[:-1], backward[-1] + inside / self.micro_batches),
            forward_met=met,
            backward_met=met_back,
            update_s=self._update(operators, spread=seat.manner is Manner.PINNED),
            sum_bytes=self._sum_bytes(seat, stretches),
            held=self._held(operators, spread=seat.manner is Manner.PINNED),
        )

    def _stretches(
        self, operators: tuple[Operator, ...], meetings: Mapping[Meeting, Act]
    ) -> tuple[tuple[tuple[Operator, ...], ...], tuple[Met, ...]]:
        """Operators cut where servers meet, and what they do there; an exchange counts the elements of one GPU."""
        stretches: list[list[Operator]] = [[]]
        met: list[Met] = []
        for operator in operators:
            if isinstance(operator, Exchange) and operator.meeting in meetings:
                stretches.append([])
                size_bytes = operator.elements * self.server.gpus * self.element_bytes
                met.append(Met(meetings[operator.meeting], size_bytes))
            else:
                stretches[-1].append(operator)
        return tuple(tuple(stretch) for stretch in stretches), tuple(met)

    def _samples_of_gpu(self, number: int, seat: Seat) -> int:
        ways = seat.degree if seat.manner.parts_samples else 1
        samples = self.batch // self.micro_batches
        if samples % ways:
            raise StrategyError(
                f"layer {self.workload.layers[number].name}: {samples} samples do not fall into {ways} equal parts: "
                f"give a batch that {ways} servers share equally"
            )
        return part(samples // ways, self.server.gpus)

    def _at(self, samples: int) -> Workload:
        if samples not in self._sized:
            self._sized[samples] = self.workload.at_batch(samples)
        return self._sized[samples]

    def _update(self, operators: tuple[Operator, ...], *, spread: bool) -> float:
        dense = tuple(op for op in operators if not isinstance(op, SparseTable))
        mine = part(_parameters(dense), self.server.gpus) if spread else _parameters(dense)
        tensors = sum(op.parameter_tensors() for op in dense)
        return self.prices.update(mine, tensors, self.optimiser) if mine and self.optimiser != "none" else 0.0

    def _sum_bytes(self, seat: Seat, stretches: tuple[tuple[Operator, ...], ...]) -> float:
        if seat.degree == 1 or not seat.manner.parts_samples:
            return 0.0
        # Of three stretches the middle one is the experts, which differ from server to server.
        alike = stretches[0] if len(stretches) == 1 else stretches[0] + stretches[-1]
        return _parameters(alike) * self.element_bytes

    def _held(self, operators: tuple[Operator, ...], *, spread: bool) -> Held:
        weights = gradients = state = kept = 0.0
        for operator in operators:
            sparse = isinstance(operator, SparseTable)
            mine = operator.parameters() / (self.server.gpus if spread or sparse else 1)
            weights += mine * self.element_bytes
            # A sparse table has gradients for the rows of one step alone, which its lookups' results stand for.
            gradients += 0.0 if sparse else mine * self.element_bytes
            # Rows of a sparse table are updated in place, without a copy in 32 bits.
            state += mine * state_bytes(self.optimiser, self.element_bytes, master_weights=not sparse)
            kept += (operator.saved_elements() * self.element_bytes + operator.saved_bytes()) * self.micro_batches
        return Held(weights, gradients, state, kept)

    @property
    def room_bytes(self) -> float:
        """Bytes of a GPU that layers may hold together."""
        return (self.server.memory_bytes - WORKSPACE_BYTES) / (1 + FRAGMENTATION)


def _parameters(operators: tuple[Operator, ...]) -> int:
    return sum(operator.parameters() for operator in operators)


def expert_count(layer: Layer) -> int:
    """Experts of a layer whose samples travel to experts, otherwise 0."""
    travels = [op for op in layer.operators if isinstance(op, Exchange) and op.meeting in MEETINGS[Manner.EXPERT][0]]
    counts = [int(getattr(op, "experts", 0)) for op in layer.operators]
    return max(counts, default=0) if len(travels) == 2 else 0


def seat_memory(pricer: SeatPricer, seating: Seating) -> Memory:
    """What a GPU of the fullest server needs."""
    held = np.zeros((seating.servers, 4))
    for layer, seat in enumerate(seating.seats):
        one = pricer.work(layer, seat).held
        held[list(seat.servers)] += (one.weights, one.gradients, one.optimiser, one.activations)
    fullest = held[int(held.sum(axis=1).argmax())]
    parts = (np.array([part]) for part in (*fullest, WORKSPACE_BYTES, FRAGMENTATION * fullest.sum()))
    return Memory(*parts)
