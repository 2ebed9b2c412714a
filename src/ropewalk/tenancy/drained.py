"""Parts of a plant that take no new jobs: servers, leafs, spines and leaf-spine links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True)
class Drained:
    """A set of parts out of service; sets add up with | and come apart with -.

    >>> Drained(leafs=[3]) | Drained(links=[(0, 2)])
    Drained(servers=frozenset(), leafs=frozenset({3}), spines=frozenset(), links=frozenset({(0, 2)}))
    """

    servers: Iterable[int] = frozenset()
    leafs: Iterable[int] = frozenset()
    spines: Iterable[int] = frozenset()
    links: Iterable[tuple[int, int]] = frozenset()
    """(leaf, spine), with all cables between the two."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, frozenset(getattr(self, field.name)))

    def __or__(self, other: Drained) -> Drained:
        return Drained(*(_set(self, name) | _set(other, name) for name in _NAMES))

    def __sub__(self, other: Drained) -> Drained:
        """What is left; taking away what was not there is a mistake."""
        for name in _NAMES:
            for part in sorted(_set(other, name) - _set(self, name)):
                raise ClusterError(f"{name[:-1]} {part} is not drained: restore a part that was drained")
        return Drained(*(_set(self, name) - _set(other, name) for name in _NAMES))

    def check(self, plant: Plant) -> None:
        """Every part must exist."""
        findings = Findings(ClusterError, f"what is drained of {plant.name}")
        for name, count in (("servers", plant.servers), ("leafs", plant.leafs), ("spines", plant.spines)):
            for number in sorted(_set(self, name)):
                if not 0 <= number < count:
                    findings.add(f"there is no {name[:-1]} {number}: give one of 0 to {count - 1}")
        for leaf, spine in sorted(_set(self, "links")):
            if not (0 <= leaf < plant.leafs and 0 <= spine < plant.spines and plant.cables[leaf, spine]):
                findings.add(f"there is no link from leaf {leaf} to spine {spine}: give one that has a cable")
        findings.raise_if_any()

    def servers_up(self, plant: Plant) -> NDArray[np.bool_]:
        """Servers that may get jobs."""
        leaf_up = np.ones(plant.leafs, bool)
        leaf_up[sorted(self.leafs)] = False
        up = leaf_up[plant.server_leaf]
        up[sorted(self.servers)] = False
        return up

    def links_up(self, plant: Plant) -> NDArray[np.bool_]:
        """[leaf, spine]: links that may be given to jobs."""
        up = plant.cables > 0
        up[sorted(self.leafs), :] = False
        up[:, sorted(self.spines)] = False
        for leaf, spine in self.links:
            up[leaf, spine] = False
        return up

    def touches(self, plant: Plant, allocation: Allocation) -> bool:
        """Does a job use any of it? A job on shared links may use every link of its leafs."""
        leafs, size = set(allocation.leafs), plant.gpus_per_server
        crosses = len(leafs) > 1
        shared = allocation.stage == "shared" and crosses
        links = set(allocation.links)
        return bool(
            leafs & _set(self, "leafs")
            or {gpu // size for gpu in allocation.gpus} & _set(self, "servers")
            or (_set(self, "spines") if shared else set(allocation.spines) & _set(self, "spines"))
            or any(link in links or (shared and link[0] in leafs) for link in self.links)
        )

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = {name: sorted(_set(self, name)) for name in _NAMES}
        document["links"] = [list(link) for link in document["links"]]
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Drained:
        links = [(leaf, spine) for leaf, spine in document["links"]]
        return cls(document["servers"], document["leafs"], document["spines"], links)


_NAMES = tuple(field.name for field in fields(Drained))


def _set(drained: Drained, name: str) -> frozenset[Any]:
    parts: frozenset[Any] = getattr(drained, name)
    return parts
