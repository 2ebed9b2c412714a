"""A fast estimate of a step's time, kept up to date proposal by proposal: what the search is guided by.

It stands for the flow simulation of the lowered step and is coarser in this: transfers between two layers are one job,
which begins when the slowest sender is ready and ends for all receivers together; jobs take links in turn instead of
sharing them at max-min rates, save that transfers share with sums; a collective inside a layer has the network to
itself.
Where jobs do not overlap on links and load them evenly it is exact. The answer of a plan is always simulated.

Incremental: prices of layers by seat, loads of transfers by the two seats and loads of sums by group are worked out
when they are first met. A proposal changes the entries of the layers that move and of their edges; a kernel then goes
through the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign._estimate_kernel import LayerEdges, Loads, Places, Seated, step_seconds
from ropewalk.codesign.link_loads import EstimatedNetwork, Load
from ropewalk.codesign.seats import Changes
from ropewalk.collectives.act import Act
from ropewalk.strategy.between import Parts, gradients_between, parts_between
from ropewalk.strategy.seating import Seat, Seating
from ropewalk.task.lower.moves import Move
from ropewalk.task.lower.seat_pricer import SeatPricer, met_in, seconds_in

NOTHING = -1
MOST_KEPT = 1 << 23
"""Entries of loads that are kept, a link of a load each; then all but those in use are forgotten."""


class LoadShelf:
    """Loads one behind the other in arrays that grow by doubling."""

    def __init__(self, most_kept: int) -> None:
        self.count = 0
        self.most_kept = most_kept
        self._used = 0
        self._start = np.zeros(64, np.int64)
        self._latency = np.zeros(64)
        self._link = np.zeros(1024, np.int32)
        self._seconds, self._flows = np.zeros(1024), np.zeros(1024)

    def add(self, load: Load) -> int:
        """The number of a load from now on."""
        end = self._used + len(load.link)
        while end > len(self._link):
            self._link = _doubled(self._link)
            self._seconds, self._flows = _doubled(self._seconds), _doubled(self._flows)
        while self.count + 2 > len(self._start):
            self._start, self._latency = _doubled(self._start), _doubled(self._latency)
        self._link[self._used : end] = load.link
        self._seconds[self._used : end] = load.seconds
        self._flows[self._used : end] = load.flows
        self._latency[self.count] = load.latency
        self._used = self._start[self.count + 1] = end
        self.count += 1
        return self.count - 1

    @property
    def is_full(self) -> bool:
        return self._used > self.most_kept

    def columns(self) -> Loads:
        return Loads(self._start, self._latency, self._link, self._seconds, self._flows)


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([column, np.zeros_like(column)])


class SeatingEstimate:
    """The time of a step on a network, for one seating after another.

    `seats` are those that will be met, by number; `place` seats every layer anew, `tried` moves some layers, and what
    was tried last stays only if `keep` is called before the next try.
    """

    def __init__(
        self,
        pricer: SeatPricer,
        network: EstimatedNetwork,
        seats: Sequence[Seat],
        servers: int,
        bucket_bytes: float = 0.0,
        most_kept: int = MOST_KEPT,
    ) -> None:
        self.pricer = pricer
        self.network = network
        self.seats = list(seats)
        self._edges = [
            (source, reader)
            for reader, layer in enumerate(pricer.workload.layers)
            for source in dict.fromkeys(layer.inputs)
        ]
        layers = len(pricer.workload.layers)
        self._touching: list[list[int]] = [[] for _ in range(layers)]
        for edge, ends in enumerate(self._edges):
            for layer in ends:
                self._touching[layer].append(edge)
        source, reader = (np.array([ends[at] for ends in self._edges], np.int64) for at in range(2))
        self._model = LayerEdges(
            *_rows(reader, layers), *_rows(source, layers),
            np.array([pricer.output_bytes(ends[0]) / pricer.micro_batches for ends in self._edges], np.float64),
            pricer.micro_batches, float(bucket_bytes), servers, network.links,
        )  # fmt: skip
        self._seated = Seated(
            np.zeros(layers, np.int64), np.zeros(layers), np.zeros(layers), np.zeros(layers), np.zeros(layers),
            np.full(len(self._edges), NOTHING, np.int64), np.full(len(self._edges), NOTHING, np.int64),
        )  # fmt: skip
        self._shelf = LoadShelf(most_kept)
        self._between: dict[tuple[int, int], tuple[int, int]] = {}
        self._layer_known: dict[tuple[int, int], tuple[float, float, float, float]] = {}
        counts = [seat.degree for seat in self.seats]
        groups: dict[tuple[int, ...], int] = {}
        group = [groups.setdefault(seat.servers, len(groups)) for seat in self.seats]
        self._places = Places(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.array([server for seat in self.seats for server in seat.servers], np.int64),
            np.full(len(self.seats), NOTHING, np.int64),
            np.array(group, np.int64),
        )
        self._undo: list[tuple[NDArray[np.int64] | NDArray[np.float64], int, float]] = []

    def place(self, places: Sequence[int]) -> float:
        """Seconds with every layer on the seat of this number."""
        self._undo.clear()
        for layer, seat in enumerate(places):
            self._seat_layer(layer, int(seat))
        for edge in range(len(self._edges)):
            self._seat_edge(edge)
        self._undo.clear()
        return self._seconds()

    def _forget(self) -> None:
        """Keep only the loads of the seating that is there now."""
        self._shelf = LoadShelf(self._shelf.most_kept)
        self._between.clear()
        self._places.sum_load[:] = NOTHING
        self.place(self._seated.seat.tolist())

    def tried(self, changes: Changes) -> float:
        """Seconds after these moves, which are taken back by the next try unless they are kept."""
        self._take_back()
        if self._shelf.is_full:
            self._forget()
        for layer, seat in changes.items():
            self._seat_layer(layer, seat)
        for edge in dict.fromkeys(edge for layer in changes for edge in self._touching[layer]):
            self._seat_edge(edge)
        return self._seconds()

    def keep(self) -> None:
        """Stay with what was tried last."""
        self._undo.clear()

    def _take_back(self) -> None:
        for column, at, before in reversed(self._undo):
            column[at] = before
        self._undo.clear()

    def _set(self, column: NDArray[np.int64] | NDArray[np.float64], at: int, value: float) -> None:
        self._undo.append((column, at, column[at]))
        column[at] = value

    def _seat_layer(self, layer: int, seat: int) -> None:
        known = self._layer_known.get((layer, seat))
        if known is None:
            known = self._layer_known[layer, seat] = self._layer(layer, self.seats[seat])
        columns = self._seated
        forward, backward, update, summed = known
        self._set(columns.seat, layer, seat)
        self._set(columns.forward, layer, forward)
        self._set(columns.backward, layer, backward)
        self._set(columns.update, layer, update)
        self._set(columns.sum_bytes, layer, summed)
        if summed and self._places.sum_load[seat] == NOTHING:
            self._places.sum_load[seat] = self._shelf.add(self.network.sum_load(self.seats[seat].servers))

    def _layer(self, layer: int, seat: Seat) -> tuple[float, float, float, float]:
        work = self.pricer.work(layer, seat)
        there, back = (
            seconds_in(moves) + sum(self._meeting(seat, one) for one in met_in(moves))
            for moves in (work.forward, work.backward)
        )
        return there, back, work.update_s, work.sum_bytes

    def _meeting(self, seat: Seat, met: Move) -> float:
        """A sum over a seat, or a part from everybody to everybody else, alone on the network."""
        if met.act is Act.ALL_REDUCE:
            return self.network.sum_load(seat.servers).alone(met.amount)
        members = np.array(seat.servers)
        a, b = np.nonzero(members[:, None] != members)
        each = np.full(len(a), met.amount / seat.degree)
        return self.network.pairs_load(members[a], members[b], each).alone(1.0)

    def _seat_edge(self, edge: int) -> None:
        source, reader = self._edges[edge]
        key = int(self._seated.seat[source]), int(self._seated.seat[reader])
        known = self._between.get(key)
        if known is None:
            known = self._between[key] = self._transfers(*(self.seats[number] for number in key))
        self._set(self._seated.there, edge, known[0])
        self._set(self._seated.back, edge, known[1])

    def _transfers(self, source: Seat, reader: Seat) -> tuple[int, int]:
        there, back = parts_between(source, reader), gradients_between(reader, source)
        return self._load(there), self._load(back)

    def _load(self, parts: Parts) -> int:
        if not len(parts.src):
            return NOTHING
        return self._shelf.add(self.network.pairs_load(parts.src, parts.dst, parts.bytes_of(1.0)))

    def _seconds(self) -> float:
        return float(step_seconds(self._model, self._seated, self._places, self._shelf.columns()))


def estimate(pricer: SeatPricer, seating: Seating, network: EstimatedNetwork, *, bucket_bytes: float = 0.0) -> float:
    """Seconds of a step with this seating on this network."""
    numbers: dict[Seat, int] = {}
    places = [numbers.setdefault(seat, len(numbers)) for seat in seating.seats]
    return SeatingEstimate(pricer, network, list(numbers), seating.servers, bucket_bytes).place(places)


def _rows(owner: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CSR: the edges of every layer."""
    order = np.argsort(owner, kind="stable").astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=rows))]).astype(np.int64), order
