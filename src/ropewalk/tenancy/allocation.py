"""What a job gets: GPUs in rank order and the links that are its alone; or why it gets nothing and waits.

The spine of a GPU depends on the GPU alone: the i-th GPU of the job on its leaf sends up to the i-th spine of the job,
counted inside the job and never by physical number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.records import record

Stage = Literal["server", "leaf", "clos", "ocs", "ocs-core", "ocs-pods", "shared", "shard"]
"""One server; one leaf; leafs times spines with reserved links; the same over optical circuits; reserved links inside
pods and circuits between them; circuits inside pods and reserved links between them; links shared by all; servers
behind patch panels, joined by cables of their own."""

Guarantee = Literal["contention-free", "rearrangeable", "isolated", "none"]
"""Contention-free: under source routing the job never meets another one, and never itself in the collectives that
`contention_free` proves. Rearrangeable: its links are its own, and enough for every permutation if routes were changed
round by round; a static rule may still collide inside the job. Isolated: cables are its own, and what its servers relay
for each other shares them. None: links are shared with everybody."""

Tier = Literal["spine", "core"]
"""Links between leafs and spines, or between spines and cores."""

OWN_LEAF = -1
"""The spine of a GPU whose traffic never leaves its leaf."""


@dataclass(frozen=True, eq=False)
class CableColumns:
    """Reserved cables between two tiers of switches: an entry for each."""

    below: NDArray[np.int64]
    above: NDArray[np.int64]
    cable: NDArray[np.int64]

    @classmethod
    def of(cls, reserved: Sequence[tuple[int, int, int]]) -> CableColumns:
        """From (switch below, switch above, which of their cables)."""
        held = np.array(reserved, np.int64).reshape(-1, 3)
        return cls(*(np.ascontiguousarray(column) for column in held.T))


NO_CABLES = CableColumns(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(frozen=True, eq=False)
class AllocationColumns:
    """What a job takes from the plant, for loops over arrays."""

    gpus: NDArray[np.int64]
    links: CableColumns = NO_CABLES
    """Cables between leafs and spines."""
    core_links: CableColumns = NO_CABLES
    """Cables between spines and cores."""


@dataclass(frozen=True)
class Allocation:
    """The GPUs of one job, and the leaf-spine cables that only this job may use, in both directions."""

    job: str
    gpus: tuple[int, ...]
    """In rank order, leaf by leaf and server by server."""
    stage: Stage
    leafs: tuple[int, ...]
    """In the order in which the ranks visit them."""
    spines: tuple[int, ...]
    """Spine i of the job serves the i-th GPU of the job on every leaf."""
    links: tuple[tuple[int, int], ...]
    """(leaf, spine) of every reserved cable; each is reserved up and down at once."""
    spine_of_gpu: tuple[int, ...]
    """Spine of each entry of `gpus`; -1 where the GPU stays on its leaf."""
    leaf_of_gpu: tuple[int, ...]
    """Leaf of each entry of `gpus`."""
    guarantee: Guarantee = "contention-free"
    cables: tuple[int, ...] = ()
    """Which of the parallel cables of each entry of `links` is taken; empty where all are the first."""
    # Only of jobs over several leafs of a plant with three tiers.
    core_links: tuple[tuple[int, int], ...] = ()
    """(spine, core) of every reserved cable above spines; each is reserved up and down at once."""
    core_of_gpu: tuple[int, ...] = ()
    """Core of each entry of `gpus`, over which it sends to other pods."""
    core_cables: tuple[int, ...] = ()
    """Which of the parallel cables of each entry of `core_links` is taken; empty where all are the first."""

    @classmethod
    def over_links(
        cls,
        job: str,
        columns: AllocationColumns,
        *,
        leafs: Sequence[int],
        spines: Sequence[int],
        spine_of_gpu: Sequence[int],
        leaf_of_gpu: Sequence[int],
        core_of_gpu: Sequence[int] = (),
        guarantee: Guarantee = "contention-free",
    ) -> Allocation:
        """A job over several leafs with reserved cables, from the arrays that an allocator has found."""
        return cls(
            job=job,
            gpus=tuple(columns.gpus.tolist()),
            stage="clos",
            leafs=tuple(leafs),
            spines=tuple(spines),
            links=_pairs(columns.links),
            spine_of_gpu=tuple(spine_of_gpu),
            leaf_of_gpu=tuple(leaf_of_gpu),
            guarantee=guarantee,
            cables=tuple(columns.links.cable.tolist()),
            core_links=_pairs(columns.core_links),
            core_of_gpu=tuple(core_of_gpu),
            core_cables=tuple(columns.core_links.cable.tolist()),
        ).knowing(columns)

    def knowing(self, columns: AllocationColumns) -> Allocation:
        """The same allocation, which need not make its columns any more."""
        self.__dict__["columns"] = columns
        return self

    @cached_property
    def columns(self) -> AllocationColumns:
        """GPUs and reserved cables as arrays."""
        held = CableColumns.of(self.reserved()), CableColumns.of(self.reserved_above())
        return AllocationColumns(np.array(self.gpus, np.int64), *held)

    @cached_property
    def circuit_columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """`links` and `cables` as (below, above, cable), also where they are optical circuits."""
        below, above = np.fromiter(chain(*self.links), np.int64, 2 * len(self.links)).reshape(-1, 2).T
        return below, above, np.array(self.cables, np.int64)

    def kept(self, known: dict[Any, Any]) -> Allocation:
        """The same for the record: numbers and links that others in `known` have too are the same objects.

        Replays keep what tens of thousands of jobs held; most of them held the same GPUs and links.

        >>> known, pairs = {}, ((1000, 2000), (1000, 2001))
        >>> one, other = (Allocation(job, (), "clos", (), (), (*pairs,), (), ()).kept(known) for job in "ab")
        >>> one.links[1] is other.links[1]
        True
        """
        shared: dict[str, Any] = {
            name: tuple(known.setdefault(value, value) for value in getattr(self, name))
            for name in ("gpus", "links", "spine_of_gpu", "leaf_of_gpu", "cables", "core_links", "core_of_gpu")
        }
        return replace(self, **shared)

    @property
    def has_circuits(self) -> bool:
        """Are links of it optical circuits, which were set up for it?"""
        return self.stage in ("ocs", "ocs-core", "ocs-pods")

    @property
    def size(self) -> int:
        return len(self.gpus)

    def reserved(self) -> list[tuple[int, int, int]]:
        """(leaf, spine, cable) of every reserved cable between a leaf and a spine of the plant.

        Optical circuits are not among them: a plant has fibres there, and their state keeps its own book.
        """
        return [] if self.stage in ("ocs", "ocs-pods") else _strands(self.links, self.cables)

    def reserved_above(self) -> list[tuple[int, int, int]]:
        """(spine, core, cable) of every reserved cable between a spine and a core."""
        return _strands(self.core_links, self.core_cables)

    @property
    def cores(self) -> tuple[int, ...]:
        """Cores of the job, in the order of their numbers."""
        return tuple(sorted({core for _, core in self.core_links}))

    @property
    def crosses(self) -> bool:
        """Does it use links between switches? Under one leaf, or on the rails of one unit, it does not."""
        return self.stage not in ("server", "leaf") and len(self.leafs) > 1

    def gpus_on_leaf(self) -> tuple[int, ...]:
        """How many GPUs each of `leafs` gives."""
        return tuple(self.leaf_of_gpu.count(leaf) for leaf in self.leafs)

    def as_document(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON; what only jobs on three tiers have is left out of others."""
        above: dict[str, Any] = {}
        if self.core_of_gpu:
            above["core_links"] = [list(link) for link in self.core_links]
            above["core_of_gpu"] = list(self.core_of_gpu)
            above["core_cables"] = list(self.core_cables)
        return {
            "job": self.job,
            "gpus": list(self.gpus),
            "stage": self.stage,
            "leafs": list(self.leafs),
            "spines": list(self.spines),
            "links": [list(link) for link in self.links],
            "spine_of_gpu": list(self.spine_of_gpu),
            "leaf_of_gpu": list(self.leaf_of_gpu),
            "guarantee": self.guarantee,
            "cables": list(self.cables),
            **above,
        }

    def check(self) -> None:
        """Refuse columns that do not belong together, and numbers below any that there are."""
        wrong = [name for name in ("spine_of_gpu", "leaf_of_gpu") if len(getattr(self, name)) != len(self.gpus)]
        wrong += ["cables"] if self.cables and len(self.cables) != len(self.links) else []
        wrong += ["core_cables"] if self.core_cables and len(self.core_cables) != len(self.core_links) else []
        wrong += ["core_of_gpu"] if self.core_of_gpu and len(self.core_of_gpu) != len(self.gpus) else []
        numbers = (*self.gpus, *self.leafs, *self.spines, *self.leaf_of_gpu, *self.cables, *self.core_cables)
        numbers = (*numbers, *chain(*self.links), *chain(*self.core_links))
        if wrong or min(numbers, default=0) < 0 or min(self.spine_of_gpu, default=0) < OWN_LEAF:
            what = f"{wrong[0]} does not have one entry per item" if wrong else "a number is negative"
            raise ClusterError(
                f"job {self.job!r} has an impossible allocation ({what}): give a state file written by ropewalk"
            )

    @classmethod
    def from_document(cls, document: object) -> Allocation:
        """The allocation that `as_document` made plain; every field is checked."""
        found = record(cls, document, "an allocation", ClusterError)
        found.check()
        return found


def _pairs(columns: CableColumns) -> tuple[tuple[int, int], ...]:
    return tuple(zip(columns.below.tolist(), columns.above.tolist(), strict=True))


def _strands(links: Sequence[tuple[int, int]], cables: Sequence[int]) -> list[tuple[int, int, int]]:
    """Links with the numbers of their cables, which are all the first unless given."""
    numbers = cables or (0,) * len(links)
    return [(below, above, cable) for (below, above), cable in zip(links, numbers, strict=True)]


class Reason(Enum):
    """Why a job cannot start now."""

    GPU_SHORTAGE = "gpu-shortage"
    """Fewer GPUs are free than it asks for."""
    SERVER_FRAGMENTATION = "server-fragmentation"
    """Enough GPUs are free, but too few servers have enough of them."""
    NETWORK_FRAGMENTATION = "network-fragmentation"
    """Enough servers are free, but no set of leafs has enough free spines in common."""


@dataclass(frozen=True)
class Waiting:
    """A job that cannot start now, with what stands in its way."""

    reason: Reason
    explanation: str
    blocking_spines: tuple[int, ...] = ()
    """Spines that are missing towards the leafs that came nearest to holding the job."""
    never: bool = False
    """True where the job cannot start on this plant even when it is empty."""
    nearest_leafs: tuple[int, ...] = ()
    """The leafs that came nearest to holding the job, where only links to them are missing."""
    # Only on plants with three tiers.
    tier: Tier | None = None
    """Links of which tier came nearest to letting it start, and did not."""
    blocking_cores: tuple[int, ...] = ()
    """Cores that are missing towards the pods that came nearest to holding the job."""
