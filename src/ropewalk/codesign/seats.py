"""The space of a search: which seats every layer may take, what they hold, and who is whose neighbour.

The published space is sample parallelism on cosets and tables on one server each. Extensions are flags: `tensor` shares
out the weights of a layer, as Megatron-LM does or by its outputs, `expert` spreads experts over servers. Pipelines need
no seats of their own: layers in a row on disjoint cosets are stages, and what makes a pipeline of them is more than one
micro-batch (`SeatPricer`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ropewalk.errors import MemoryShortage, StrategyError
from ropewalk.strategy.columns import can_be_cut, can_be_split
from ropewalk.strategy.seating import Manner, Seat, Seating, coset
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.workload.exchange import Meeting
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.table import EmbeddingBags
from ropewalk.workload.workload import Layer, Workload

Places = tuple[int, ...]
"""The number of the seat of every layer."""
Changes = Mapping[int, int]
"""Layers that move, each to the seat of this number."""


@dataclass(frozen=True)
class SeatSpace:
    """Seats by number, the numbers that each layer may take, and bytes that a GPU then holds of it."""

    servers: int
    names: tuple[str, ...]
    seats: tuple[Seat, ...]
    options: tuple[tuple[int, ...], ...]
    held: tuple[Mapping[int, float], ...] = field(repr=False)
    room_bytes: float
    neighbours: tuple[tuple[tuple[int, float], ...], ...] = field(repr=False)
    """Of every layer: the layers it reads and those that read it, with the bytes between them."""
    starts: tuple[Places, ...] = ()
    """Seatings to begin with, all of which fit: every layer by samples on all servers and table i on server i mod n,
    then the same in two stages on disjoint cosets, and so on."""

    @property
    def start(self) -> Places:
        """Where a search begins unless told otherwise."""
        return self.starts[0]

    @property
    def size(self) -> int:
        """Seatings in the space, whether they fit in memory or not."""
        return int(np.prod([len(options) for options in self.options], dtype=object))

    @cached_property
    def allowed(self) -> tuple[frozenset[int], ...]:
        return tuple(frozenset(options) for options in self.options)

    @cached_property
    def movable(self) -> tuple[int, ...]:
        """Layers with a choice."""
        return tuple(layer for layer, options in enumerate(self.options) if len(options) > 1)

    @cached_property
    def pinned(self) -> tuple[int, ...]:
        """Layers that always sit on one server."""
        return tuple(
            layer
            for layer in self.movable
            if all(self.seats[option].manner is Manner.PINNED for option in self.options[layer])
        )

    def seating(self, places: Sequence[int]) -> Seating:
        return Seating(self.servers, tuple(self.seats[number] for number in places))

    def places_of(self, seating: Seating) -> Places:
        """The numbers of a seating's seats; a seat outside the space is an error."""
        number = {seat: at for at, seat in enumerate(self.seats)}
        places = []
        for layer, seat in enumerate(seating.seats):
            at = number.get(seat, -1)
            if at not in self.allowed[layer]:
                raise StrategyError(
                    f"layer {self.names[layer]} sits {seat.manner.value} on {seat.degree} servers, the first "
                    f"{seat.servers[0]}, which is outside the search space: use a seat in it or allow the extension"
                )
            places.append(at)
        return tuple(places)


class Ledger:
    """Bytes that a GPU of every server holds, kept up to date move by move."""

    def __init__(self, space: SeatSpace, places: Sequence[int]) -> None:
        self.space = space
        self.places = list(places)
        self._servers = [np.array(seat.servers) for seat in space.seats]
        self.held = np.zeros(space.servers)
        for layer, seat in enumerate(places):
            self.held[self._servers[seat]] += space.held[layer][seat]

    def fits(self, changes: Changes) -> bool:
        """Would all servers have room after these moves?"""
        if not np.isfinite(self.space.room_bytes):
            return True
        after = self.held.copy()
        for layer, seat in changes.items():
            after[self._servers[self.places[layer]]] -= self.space.held[layer][self.places[layer]]
            after[self._servers[seat]] += self.space.held[layer][seat]
        return bool(after.max() <= self.space.room_bytes)

    def keep(self, changes: Changes) -> None:
        for layer, seat in changes.items():
            self.held[self._servers[self.places[layer]]] -= self.space.held[layer][self.places[layer]]
            self.held[self._servers[seat]] += self.space.held[layer][seat]
            self.places[layer] = seat


def is_table(layer: Layer) -> bool:
    """Is this a layer of embedding tables, which are kept on one server?"""
    return any(isinstance(operator, SparseTable | EmbeddingBags) for operator in layer.operators)


def expert_count(layer: Layer) -> int:
    """Experts of a layer whose samples travel to experts, otherwise 0."""
    if not (layer.meets(Meeting.DISPATCH) and layer.meets(Meeting.COMBINE)):
        return 0
    return max((int(getattr(operator, "experts", 0)) for operator in layer.operators), default=0)


def space_of(pricer: SeatPricer, servers: int, *, tensor: bool = False, expert: bool = False) -> SeatSpace:
    """All seats for the layers of a workload on this many servers."""
    if servers < 1:
        raise StrategyError(f"{servers} servers: give 1 or more")
    number: dict[Seat, int] = {}
    options = tuple(
        tuple(number.setdefault(seat, len(number)) for seat in seats_of(layer, pricer, servers, tensor, expert))
        for layer in pricer.workload.layers
    )
    seats = tuple(number)
    held = tuple(
        {option: pricer.work(layer, seats[option]).held_bytes for option in choices}
        for layer, choices in enumerate(options)
    )
    space = SeatSpace(
        servers, tuple(layer.name for layer in pricer.workload.layers), seats, options, held, pricer.room_bytes,
        _neighbours(pricer),
    )  # fmt: skip
    return replace(space, starts=_starts(space, pricer))


def seats_of(layer: Layer, pricer: SeatPricer, servers: int, tensor: bool, expert: bool) -> list[Seat]:
    """Every seat that a layer may take, the widest first."""
    degrees = [degree for degree in range(servers, 0, -1) if servers % degree == 0]
    cosets = [coset(servers, degree, first) for degree in degrees for first in range(servers // degree)]
    samples, experts = pricer.batch // pricer.micro_batches, expert_count(layer)
    equal = [members for members in cosets if samples % len(members) == 0]
    if is_table(layer):
        found = [Seat((server,), Manner.PINNED) for server in range(servers)]
    else:
        found = [Seat(members) for members in equal]
    if tensor:
        for members in cosets:
            if len(members) > 1 and can_be_split(layer, len(members), pricer.workload.batch):
                found.append(Seat(members, Manner.TENSOR))
            elif len(members) > 1 and can_be_cut(layer, len(members)):
                found.append(Seat(members, Manner.COLUMNS))
    if expert and experts:
        spread = [members for members in equal if len(members) > 1 and experts % len(members) == 0]
        found += [Seat(members, Manner.EXPERT) for members in spread]
    return found


def check_seats(workload: Workload, seating: Seating) -> None:
    """Refuse a seating that is not for this workload."""
    if len(seating.seats) != len(workload.layers):
        raise StrategyError(
            f"the seating has {len(seating.seats)} seats, {workload.name} has {len(workload.layers)} layers: "
            "give a seat for every layer"
        )


def check_memory(space: SeatSpace, seating: Seating) -> None:
    """Refuse a seating that does not fit, naming the fullest server."""
    held = Ledger(space, space.places_of(seating)).held
    if held.max() > space.room_bytes:
        raise _too_large(space, held)


def _too_large(space: SeatSpace, held: np.ndarray[tuple[int], np.dtype[np.float64]], what: str = "") -> MemoryShortage:
    """The fact alone: which remedy works takes trying (`remedies.py`)."""
    fullest = int(held.argmax())
    return MemoryShortage(
        f"{what}a GPU of server {fullest} would hold {held[fullest] / 1e9:.1f} GB of weights, gradients, optimiser "
        f"state and activations and has room for {space.room_bytes / 1e9:.1f} GB",
        float(held[fullest]),
    )


def _neighbours(pricer: SeatPricer) -> tuple[tuple[tuple[int, float], ...], ...]:
    beside: list[list[tuple[int, float]]] = [[] for _ in pricer.workload.layers]
    for reader, layer in enumerate(pricer.workload.layers):
        for source in dict.fromkeys(layer.inputs):
            volume = pricer.output_bytes(source)
            beside[reader].append((source, volume))
            beside[source].append((reader, volume))
    return tuple(tuple(found) for found in beside)


def _starts(space: SeatSpace, pricer: SeatPricer) -> tuple[Places, ...]:
    """One stage, two stages, … on disjoint cosets, then every layer cut as often as it can be: those that fit."""
    stages = [count for count in range(1, space.servers + 1) if space.servers % count == 0]
    tried = [staged(space, pricer, count) for count in stages]
    by_columns = tuple(_most_cut(space, layer, seat) for layer, seat in enumerate(tried[0].seats))
    numbers = [space.places_of(seating) for seating in (*tried, Seating(space.servers, by_columns))]
    held = [Ledger(space, places).held for places in numbers]
    fitting = [places for places, full in zip(numbers, held, strict=True) if full.max() <= space.room_bytes]
    if not fitting:
        raise _too_large(space, min(held, key=lambda one: float(one.max())), f"{pricer.workload.name}: ")
    return tuple(dict.fromkeys(fitting))


def _most_cut(space: SeatSpace, layer: int, otherwise: Seat) -> Seat:
    by_weights = (Manner.TENSOR, Manner.COLUMNS)
    cut = [space.seats[at] for at in space.options[layer] if space.seats[at].manner in by_weights]
    return max(cut, key=lambda seat: seat.degree, default=otherwise)


def staged(space: SeatSpace, pricer: SeatPricer, stages: int) -> Seating:
    """Layers in a row on disjoint cosets, cut into about equal stages; tables are spread over all servers."""
    if space.servers % stages:
        raise StrategyError(f"{space.servers} servers do not make {stages} equal stages: give a divisor")
    layers = pricer.workload.layers
    tables = [layer for layer in range(len(layers)) if is_table(layers[layer])]
    rest = [layer for layer in range(len(layers)) if not is_table(layers[layer])]
    degree = space.servers // stages
    samples = pricer.batch // pricer.micro_batches
    while samples % degree or space.servers % degree:
        degree -= 1
    weight = [pricer.work(layer, Seat(coset(space.servers, degree))).held_bytes for layer in rest]
    behind = np.cumsum(weight) - np.array(weight) / 2
    stage_of = np.minimum((behind * stages / max(sum(weight), 1e-300)).astype(int), stages - 1)
    seats: dict[int, Seat] = {
        layer: Seat(coset(space.servers, degree, int(stage))) for layer, stage in zip(rest, stage_of, strict=True)
    }
    seats |= {layer: Seat((at % space.servers,), Manner.PINNED) for at, layer in enumerate(tables)}
    seating = Seating(space.servers, tuple(seats[layer] for layer in range(len(layers))))
    check_seats(pricer.workload, seating)
    return seating
