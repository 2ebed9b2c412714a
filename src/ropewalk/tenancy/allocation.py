"""What a job gets: GPUs in rank order and the links that are its alone; or why it gets nothing and waits.

The spine of a GPU depends on the GPU alone: the i-th GPU of the job on its leaf sends up to the i-th spine of the job,
counted inside the job and never by physical number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

Stage = Literal["server", "leaf", "clos", "ocs", "shared"]
"""One server; one leaf; leafs times spines with reserved links; the same over optical circuits; links shared by all."""

Guarantee = Literal["contention-free", "rearrangeable", "none"]
"""Contention-free: under source routing the job never meets another one, and never itself in the collectives that
`contention_free` proves. Rearrangeable: its links are its own, and enough for every permutation if routes were changed
round by round; a static rule may still collide inside the job. None: links are shared with everybody."""

OWN_LEAF = -1
"""The spine of a GPU whose traffic never leaves its leaf."""


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

    @property
    def size(self) -> int:
        return len(self.gpus)

    def reserved(self) -> list[tuple[int, int, int]]:
        """(leaf, spine, cable) of every reserved cable between a leaf and a spine of the plant.

        Optical circuits are not among them: a plant has fibres there, and their state keeps its own book.
        """
        if self.stage == "ocs":
            return []
        cables = self.cables or (0,) * len(self.links)
        return [(leaf, spine, cable) for (leaf, spine), cable in zip(self.links, cables, strict=True)]

    def gpus_on_leaf(self) -> tuple[int, ...]:
        """How many GPUs each of `leafs` gives."""
        return tuple(self.leaf_of_gpu.count(leaf) for leaf in self.leafs)

    def as_document(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
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
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Allocation:
        return cls(
            job=document["job"],
            gpus=tuple(document["gpus"]),
            stage=document["stage"],
            leafs=tuple(document["leafs"]),
            spines=tuple(document["spines"]),
            links=tuple((leaf, spine) for leaf, spine in document["links"]),
            spine_of_gpu=tuple(document["spine_of_gpu"]),
            leaf_of_gpu=tuple(document["leaf_of_gpu"]),
            guarantee=document["guarantee"],
            cables=tuple(document["cables"]),
        )


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
