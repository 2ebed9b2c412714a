"""Which rounds of a collective collide under source routing, with a proof or a counterexample.

Under source routing the spine of a flow depends on its source alone, so an uplink carries the flows of one GPU and only
links from spines down to leafs can be contended. The exact condition for a round in which every NIC has one flow: the
map from flow to (spine of its source, leaf of its destination) is injective over the flows that cross leafs. Leaf-wise
permutations (all flows of a leaf go to one leaf, and no leaf receives from two) fulfil it, but so do others: a cyclic
shift does wherever all leafs hold equally many ranks.

All of this is about the flows of one round, with a barrier before the next. Ranks that run ahead, because their peer
sits in the same server, may meet flows of an earlier round.

With three tiers the core of a flow depends on its source as well, so links up to cores carry the flows of one GPU, too.
Two more maps must be injective over the flows that cross pods: (core of the source, pod of the destination), and the
one above with the spine by which a flow comes down: that in the lane of its source. A cyclic shift is safe wherever all
leafs hold equally many ranks and all pods equally many leafs: of the ranks that send to one leaf no two are at the same
place of theirs, and of those that send to one pod no two are at the same place of their pods.

A NIC that has several flows at a time is busy that much longer itself. A link is contended when it carries more than
every NIC at the ends of its flows does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Program
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation, Tier
from ropewalk.tenancy.collectives import job_group, program_of
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.seats import LEAF_DOWN, LEAF_UP, SPINE_UP, RankSwitches

Direction = Literal["up", "down"]


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
    below: int
    """The leaf, or above spines the spine."""
    above: int
    """The spine, or above spines the core."""
    flows: tuple[tuple[int, int], ...]
    """(source rank, destination rank) of the flows that meet on the link."""
    link_load: int
    nic_load: int
    tier: Tier = "spine"

    @property
    def link(self) -> tuple[int, int]:
        return self.below, self.above

    def __str__(self) -> str:
        flows = ", ".join(f"{src}->{dst}" for src, dst in self.flows)
        lower = "leaf" if self.tier == "spine" else "spine"
        return (
            f"round {self.round}: the link {self.direction} between {lower} {self.below} and {self.tier} {self.above} "
            f"carries {self.link_load} chunks of {flows}, whose NICs carry {self.nic_load}"
        )


def contention_free(
    job: Allocation | RankSwitches,
    collective: Program | str,
    *,
    ranks_per_server: int | None = None,
    plant: Plant | None = None,
) -> Proof | Counterexample:
    """Prove that no round of a collective contends for a link, or show the first round and link that does.

    A collective by name is made for the ranks of the job; a hierarchical one needs to know how many share a server.
    With three tiers, or on rails, an allocation needs its plant.

    >>> contention_free(RankSwitches.of_split(4, 4, 4), "all-to-all")
    Proof(rounds=11, cross_leaf_flows=96, busiest_link=1)
    >>> print(contention_free(RankSwitches.of_split(4, 4, 2), "all-to-all"))
    round 4: the link down between leaf 1 and spine 1 carries 2 chunks of 1->6, 9->4, whose NICs carry 1
    >>> contention_free(RankSwitches.of_tree([[2, 2], [2, 2]]), "all-to-all")
    Proof(rounds=7, cross_leaf_flows=48, busiest_link=1)
    """
    seats = job if isinstance(job, RankSwitches) else RankSwitches.of(job, plant)
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
    """(kind, switch below, switch above) of every used link."""
    flow_of_hop: NDArray[np.int64]
    link_of_hop: NDArray[np.int64]
    link_load: NDArray[np.int64]
    nic_load: NDArray[np.int64]
    """Most that a NIC at the end of one of its flows carries."""


def _links(
    seats: RankSwitches, src: NDArray[np.generic], dst: NDArray[np.generic], load: NDArray[np.generic]
) -> _Loads:
    a, b, size = (np.asarray(column, np.int64) for column in (src, dst, load))
    enter, leave = seats.entering(a, b)
    cross = seats.cross(enter, leave)
    a, b, size, enter, leave = a[cross], b[cross], size[cross], enter[cross], leave[cross]
    sent = np.bincount(enter, weights=size, minlength=len(seats.leaf)).astype(np.int64)
    received = np.bincount(leave, weights=size, minlength=len(seats.leaf)).astype(np.int64)
    nic = np.maximum(sent[enter], received[leave])
    flow, links = seats.hops(enter, leave)
    shape = tuple(links.max(axis=0, initial=0) + 1)
    number, link = np.unique(np.ravel_multi_index(tuple(links.T), shape), return_inverse=True)
    key = np.column_stack(np.unravel_index(number, shape))
    link_load = np.bincount(link, weights=size[flow], minlength=len(key)).astype(np.int64)
    nic_load = np.zeros(len(key), np.int64)
    np.maximum.at(nic_load, link, nic[flow])
    return _Loads(a, b, key, flow, link, link_load, nic_load)


def _counterexample(number: int, loads: _Loads, link: int) -> Counterexample:
    kind, below, above = loads.key[link].tolist()
    flow = loads.flow_of_hop[loads.link_of_hop == link]
    ends = zip(loads.src[flow].tolist(), loads.dst[flow].tolist(), strict=True)
    return Counterexample(
        round=number,
        direction="up" if kind in (LEAF_UP, SPINE_UP) else "down",
        below=below,
        above=above,
        flows=tuple(sorted(ends)),
        link_load=int(loads.link_load[link]),
        nic_load=int(loads.nic_load[link]),
        tier="spine" if kind in (LEAF_UP, LEAF_DOWN) else "core",
    )


def _made(name: str, seats: RankSwitches, ranks_per_server: int | None) -> Program:
    if name == "hierarchical-ring" and ranks_per_server is None:
        raise ClusterError("a hierarchical ring needs servers: say how many ranks share one (ranks_per_server)")
    return program_of(name, job_group(seats.sizes(), ranks_per_server or 1))
