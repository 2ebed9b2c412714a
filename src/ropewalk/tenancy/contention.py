"""Which rounds of a collective collide under source routing, with a proof or a counterexample.

Under source routing the spine of a flow depends on its source alone, so an uplink carries the flows of one GPU and only
links from spines down to leafs can be contended. The exact condition for a round in which every NIC has one flow: the
map from flow to (spine of its source, leaf of its destination) is injective over the flows that cross leafs. Leaf-wise
permutations (all flows of a leaf go to one leaf, and no leaf receives from two) fulfil it, but so do others: a cyclic
shift does wherever all leafs hold equally many ranks.

All of this is about the flows of one round, with a barrier before the next. Ranks that run ahead, because their peer
sits in the same server, may meet flows of an earlier round.

A NIC that has several flows at a time is busy that much longer itself. A link is contended when it carries more than
every NIC at the ends of its flows does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Program
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.collectives import job_group, program_of

Direction = Literal["up", "down"]


@dataclass(frozen=True, eq=False)
class Seats:
    """Leaf and spine of every rank of a job: all that contention depends on."""

    leaf: NDArray[np.int64]
    spine: NDArray[np.int64]

    @classmethod
    def of(cls, allocation: Allocation) -> Seats:
        return cls(np.array(allocation.leaf_of_gpu, np.int64), np.array(allocation.spine_of_gpu, np.int64))

    @classmethod
    def of_split(cls, *sizes: int) -> Seats:
        """So many ranks on each leaf, rank order leaf by leaf, the i-th on spine i.

        >>> Seats.of_split(3, 2).spine.tolist()
        [0, 1, 2, 0, 1]
        """
        leaf = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - np.array(sizes, np.int64)
        return cls(leaf, np.arange(len(leaf)) - first[leaf])

    def sizes(self) -> tuple[int, ...]:
        """Ranks on each leaf, in the order in which ranks visit them."""
        return tuple(len(list(run)) for _, run in groupby(self.leaf.tolist()))


@dataclass(frozen=True)
class Proof:
    """No link is contended in any round."""

    rounds: int
    cross_leaf_flows: int
    """Flows between leafs, over all rounds."""
    busiest_link: int
    """Most chunks on a link in one round; no NIC of its flows has less."""


@dataclass(frozen=True)
class Counterexample:
    """A round in which a link carries more than each NIC that feeds or empties it."""

    round: int
    direction: Direction
    leaf: int
    spine: int
    flows: tuple[tuple[int, int], ...]
    """(source rank, destination rank) of the flows that meet on the link."""
    link_load: int
    nic_load: int

    @property
    def link(self) -> tuple[int, int]:
        return self.leaf, self.spine

    def __str__(self) -> str:
        flows = ", ".join(f"{src}->{dst}" for src, dst in self.flows)
        return (
            f"round {self.round}: the link {self.direction} between leaf {self.leaf} and spine {self.spine} carries "
            f"{self.link_load} chunks of {flows}, whose NICs carry {self.nic_load}"
        )


def contention_free(
    job: Allocation | Seats, collective: Program | str, *, ranks_per_server: int | None = None
) -> Proof | Counterexample:
    """Prove that no round of a collective contends for a link, or show the first round and link that does.

    A collective by name is made for the ranks of the job; a hierarchical one needs to know how many share a server.

    >>> contention_free(Seats.of_split(4, 4, 4), "all-to-all")
    Proof(rounds=11, cross_leaf_flows=96, busiest_link=1)
    >>> print(contention_free(Seats.of_split(4, 4, 2), "all-to-all"))
    round 4: the link down between leaf 1 and spine 1 carries 2 chunks of 1->6, 9->4, whose NICs carry 1
    """
    seats = job if isinstance(job, Seats) else Seats.of(job)
    program = _made(collective, seats, ranks_per_server) if isinstance(collective, str) else collective
    if program.ranks != len(seats.leaf):
        raise ClusterError(
            f"{program.name} has {program.ranks} ranks, the job {len(seats.leaf)} GPUs: make the program for the job"
        )
    answer = [_links(seats, pattern.src, pattern.dst, pattern.chunks) for pattern in program.patterns]
    flows = busiest = 0
    for number, index in enumerate(program.pattern_of_round.tolist()):
        loads = answer[index]
        over = np.flatnonzero(loads.link_load > loads.nic_load)
        if len(over):
            return _counterexample(number, loads, int(over[0]))
        flows += len(loads.src)
        busiest = max(busiest, int(loads.link_load.max(initial=0)))
    return Proof(len(program.rounds), flows, busiest)


@dataclass(frozen=True, eq=False)
class _Loads:
    """Flows between leafs, and what every link they use carries."""

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    key: NDArray[np.int64]
    """(direction, leaf, spine) of every used link."""
    link_of_hop: NDArray[np.int64]
    """Link of each flow on the way up, then of each flow on the way down."""
    link_load: NDArray[np.int64]
    nic_load: NDArray[np.int64]
    """Most that a NIC at the end of one of its flows carries."""


def _links(seats: Seats, src: NDArray[np.generic], dst: NDArray[np.generic], load: NDArray[np.generic]) -> _Loads:
    a, b, size = (np.asarray(column, np.int64) for column in (src, dst, load))
    cross = seats.leaf[a] != seats.leaf[b]
    a, b, size = a[cross], b[cross], size[cross]
    spine = seats.spine[a]
    if (spine == OWN_LEAF).any():
        lost = int(a[spine == OWN_LEAF][0])
        raise ClusterError(f"rank {lost} sends to another leaf and has no spine: give it one, or keep it on its leaf")
    sent = np.bincount(a, weights=size, minlength=len(seats.leaf)).astype(np.int64)
    received = np.bincount(b, weights=size, minlength=len(seats.leaf)).astype(np.int64)
    nic = np.maximum(sent[a], received[b])
    shape = (2, int(seats.leaf.max()) + 1, int(seats.spine.max(initial=0)) + 1)
    up, down = (
        np.ravel_multi_index((np.full_like(a, way), seats.leaf[end], spine), shape) for way, end in ((0, a), (1, b))
    )
    number, link = np.unique(np.concatenate([up, down]), return_inverse=True)
    key = np.column_stack(np.unravel_index(number, shape))
    link_load = np.bincount(link, weights=np.tile(size, 2), minlength=len(key)).astype(np.int64)
    nic_load = np.zeros(len(key), np.int64)
    np.maximum.at(nic_load, link, np.tile(nic, 2))
    return _Loads(a, b, key, link, link_load, nic_load)


def _counterexample(number: int, loads: _Loads, link: int) -> Counterexample:
    direction, leaf, spine = loads.key[link].tolist()
    flow = np.flatnonzero(loads.link_of_hop == link) % len(loads.src)
    ends = zip(loads.src[flow].tolist(), loads.dst[flow].tolist(), strict=True)
    return Counterexample(
        round=number,
        direction="down" if direction else "up",
        leaf=leaf,
        spine=spine,
        flows=tuple(sorted(ends)),
        link_load=int(loads.link_load[link]),
        nic_load=int(loads.nic_load[link]),
    )


def _made(name: str, seats: Seats, ranks_per_server: int | None) -> Program:
    if name == "hierarchical-ring" and ranks_per_server is None:
        raise ClusterError("a hierarchical ring needs servers: say how many ranks share one (ranks_per_server)")
    return program_of(name, job_group(seats.sizes(), ranks_per_server or 1))
