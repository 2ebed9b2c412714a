"""Where every layer sits: the per-layer strategies that a search over servers chooses among.

A `Strategy` splits a whole model in one way; a `Seating` gives every layer its own servers. Servers are numbered
0 … n-1 and work as one (a server's GPUs share its part of a layer among themselves).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ropewalk.errors import Findings, StrategyError


class Manner(Enum):
    """How the servers of a seat share a layer."""

    SAMPLE = "sample"
    """Each has all weights and an equal, contiguous part of the batch; weights are summed over the servers."""
    PINNED = "pinned"
    """One server has the layer and the whole batch, as embedding tables are kept."""
    COLUMNS = "columns"
    """Each has an equal part of the outputs, with their weights, and the whole batch (an extension of the published
    search space)."""
    TENSOR = "tensor"
    """As Megatron-LM splits attention, feed-forward and expert layers: each has a part of the columns of the first
    product and of the rows of the second, and the whole batch; they sum their results, so that all have the whole
    output (an extension)."""
    EXPERT = "expert"
    """Each has an equal, contiguous part of the batch and an equal part of the experts, to which samples travel and
    from which they return; other weights are summed over the servers (an extension)."""

    @property
    def parts_samples(self) -> bool:
        """Do the servers take different samples? Otherwise each has all of them."""
        return self in (Manner.SAMPLE, Manner.EXPERT)


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
                findings.add(f"layer {number} sits nowhere or twice on one server: name each of its servers once")
            if any(not 0 <= server < self.servers for server in seat.servers):
                findings.add(f"layer {number} sits on a server that does not exist: use 0…{self.servers - 1}")
            if seat.manner is Manner.PINNED and seat.degree != 1:
                findings.add(f"layer {number} is pinned to {seat.degree} servers: pin it to one")
        findings.raise_if_any()


def coset(servers: int, degree: int, start: int = 0) -> tuple[int, ...]:
    """Every (servers/degree)-th server from `start` on: the places on which regular rings of a group fit.

    >>> coset(12, 4, 1)
    (1, 4, 7, 10)
    """
    if degree < 1 or servers % degree:
        raise StrategyError(f"{degree} of {servers} servers are no coset: give a degree that divides {servers}")
    stride = servers // degree
    return tuple((start + number * stride) % servers for number in range(degree))
