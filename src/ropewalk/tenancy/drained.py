"""Parts of a plant that take no new jobs: servers, leafs, spines and leaf-spine links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings
from ropewalk.records import record
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.down_links import DownLinks
from ropewalk.tenancy.plant import Plant

_ALL = slice(None)


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
    cores: Iterable[int] = frozenset()
    core_links: Iterable[tuple[int, int]] = frozenset()
    """(spine, core), with all cables between the two."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, frozenset(getattr(self, field.name)))

    def __repr__(self) -> str:
        named = (f"{name}={_set(self, name)!r}" for name in _NAMES if name not in _ABOVE or _set(self, name))
        return f"Drained({', '.join(named)})"

    def __or__(self, other: Drained) -> Drained:
        return Drained(*(_set(self, name) | _set(other, name) for name in _NAMES))

    def __sub__(self, other: Drained) -> Drained:
        """What is left; taking away what was not there is a mistake."""
        for name in _NAMES:
            for part in sorted(_set(other, name) - _set(self, name)):
                raise ClusterError(f"{name[:-1]} {part} is not drained: restore a part that was drained")
        return Drained(*(_set(self, name) - _set(other, name) for name in _NAMES))

    def besides(self, other: Drained) -> Drained:
        """Parts that are not in the other set."""
        return Drained(*(_set(self, name) - _set(other, name) for name in _NAMES))

    def common(self, other: Drained) -> Drained:
        """Parts that are in both sets."""
        return Drained(*(_set(self, name) & _set(other, name) for name in _NAMES))

    def __bool__(self) -> bool:
        return any(_set(self, name) for name in _NAMES)

    def check(self, plant: Plant) -> None:
        """Every part must exist."""
        findings = Findings(ClusterError, f"what is drained of {plant.name}")
        counts = (
            ("servers", plant.servers),
            ("leafs", plant.leafs),
            ("spines", plant.spines),
            ("cores", plant.cores),
        )
        for name, count in counts:
            for number in sorted(_set(self, name)):
                if not 0 <= number < count:
                    one_of = f"one of 0 to {count - 1}" if count else "none: there are two tiers"
                    findings.add(f"there is no {name[:-1]} {number}: give {one_of}")
        for name, lower, upper, cables in (
            ("links", "leaf", "spine", plant.cables),
            ("core_links", "spine", "core", plant.core_cables),
        ):
            for below, above in sorted(_set(self, name)):
                if not (0 <= below < len(cables) and 0 <= above < cables.shape[1] and cables[below, above]):
                    findings.add(f"there is no link from {lower} {below} to {upper} {above}: give one that has a cable")
        findings.raise_if_any()

    def servers_of(self, plant: Plant) -> NDArray[np.int64]:
        """Servers that are out of service for any of these parts."""
        units = sorted({leaf // plant.rails for leaf in self.leafs})
        under = [np.arange(*plant.first_server[unit : unit + 2]) for unit in units]
        return np.concatenate([np.array(sorted(self.servers), np.int64), *under])

    def servers_up(self, plant: Plant, servers: NDArray[np.int64] | slice = _ALL) -> NDArray[np.bool_]:
        """Which servers, of all or of those given, may get jobs? On rails a server needs all its leafs."""
        unit_down, down = np.zeros(plant.units, bool), np.zeros(plant.servers, bool)
        unit_down[[leaf // plant.rails for leaf in self.leafs]] = True
        down[sorted(self.servers)] = True
        return ~(unit_down[plant.server_unit[servers]] | down[servers])

    @property
    def above_leafs(self) -> DownLinks:
        """What it means for links between leafs and spines."""
        return DownLinks(_set(self, "leafs"), _set(self, "spines"), _set(self, "links"))

    @property
    def above_spines(self) -> DownLinks:
        """What it means for links between spines and cores."""
        return DownLinks(_set(self, "spines"), _set(self, "cores"), _set(self, "core_links"))

    def links_up(self, plant: Plant) -> NDArray[np.bool_]:
        """[leaf, spine]: links that may be given to jobs."""
        return self.above_leafs.up(plant.cables)

    def core_links_up(self, plant: Plant) -> NDArray[np.bool_]:
        """[spine, core]: links that may be given to jobs."""
        return self.above_spines.up(plant.core_cables)

    def touches(self, plant: Plant, allocation: Allocation) -> bool:
        """Does a job use any of it? A job on shared links may use every link above its leafs."""
        if not _set(self, "leafs").isdisjoint(allocation.leafs):
            return True
        servers = _set(self, "servers")
        if servers and not servers.isdisjoint((allocation.columns.gpus // plant.gpus_per_server).tolist()):
            return True
        if allocation.stage == "shared":
            return allocation.crosses and self._above(plant, allocation.leafs)
        spines, cores = _set(self, "spines"), _set(self, "cores")
        if not spines.isdisjoint(allocation.spines) or (cores and not cores.isdisjoint(allocation.cores)):
            return True
        near = [link for link in self.links if link[0] in allocation.leafs]
        if near and not set(allocation.links).isdisjoint(near):
            return True
        return bool(self.core_links) and not set(allocation.core_links).isdisjoint(self.core_links)

    def _above(self, plant: Plant, leafs: tuple[int, ...]) -> bool:
        """Is any of it above these leafs, between which a job sends over whatever there is?"""
        pod_of_leaf, pod_of_spine = plant.tiers.pod_of_leaf, plant.tiers.pod_of_spine
        pods = set(pod_of_leaf[list(leafs)].tolist())
        over = len(pods) > 1
        return (
            any(pod_of_spine[spine] in pods for spine in self.spines)
            or any(leaf in leafs for leaf, _ in self.links)
            or (over and bool(self.cores))
            or (over and any(pod_of_spine[spine] in pods for spine, _ in self.core_links))
        )

    def as_document(self) -> dict[str, Any]:
        """Plain lists; parts above spines only where there are some."""
        document: dict[str, Any] = {
            name: sorted(_set(self, name)) for name in _NAMES if name not in _ABOVE or _set(self, name)
        }
        for name in ("links", "core_links"):
            if name in document:
                document[name] = [list(link) for link in document[name]]
        return document

    @classmethod
    def from_document(cls, document: object) -> Drained:
        """The parts that `as_document` made plain; every field is checked."""
        return record(SavedDrained, document, "what is drained", ClusterError).drained()


@dataclass(frozen=True)
class SavedDrained:
    """Parts out of service as a document lists them."""

    servers: tuple[int, ...]
    leafs: tuple[int, ...]
    spines: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    cores: tuple[int, ...] = ()
    core_links: tuple[tuple[int, int], ...] = ()

    def drained(self) -> Drained:
        return Drained(self.servers, self.leafs, self.spines, self.links, self.cores, self.core_links)


_NAMES = tuple(field.name for field in fields(Drained))
_ABOVE = ("cores", "core_links")


def _set(drained: Drained, name: str) -> frozenset[Any]:
    parts: frozenset[Any] = getattr(drained, name)
    return parts
