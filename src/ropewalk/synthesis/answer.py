"""What is answered: the optimum, the cut behind it, the schedule that reaches it, and how far others fall short."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ropewalk.collectives.optimum import Cut, Network, Optimum
from ropewalk.fabric import Fabric
from ropewalk.synthesis.made import Made
from ropewalk.synthesis.question import ROOTED, CollectiveQuestion

GIGA = 10**9


@dataclass(frozen=True)
class Alternative:
    """Another way to do the same on the same fabric."""

    name: str
    algbw: float | None
    """Bytes/s of large buffers on the simulated fabric; None where it does not fit."""
    seconds: float | None
    """Of the size that was asked for, start-ups included."""
    reason: str = ""
    """Why it does not fit."""


@dataclass(frozen=True)
class AtSize:
    """The fastest schedule for one size."""

    size_bytes: int
    name: str
    seconds: float
    all_seconds: dict[str, float]
    """Of every candidate."""


@dataclass(frozen=True, eq=False)
class CollectiveAnswer:
    """Everything about one collective on one fabric."""

    question: CollectiveQuestion
    network: Network
    optimum: Optimum
    made: Made | None
    """The schedule; None where switches do the work."""
    seconds: float
    """Of the size that was asked for, start-ups included, by the closed form."""
    simulated_algbw: float | None
    alternatives: tuple[Alternative, ...]
    by_size: tuple[AtSize, ...]
    seconds_to_synthesise: float
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        return len(self.network.members)

    @property
    def algbw(self) -> Fraction | float:
        """Bytes/s that the schedule promises for large buffers; the bound without a schedule."""
        return self.optimum.algbw if self.made is None else self.made.algbw

    @property
    def segments(self) -> int:
        return 1 if self.made is None else self.made.segments_for(self.question.size_bytes)

    @property
    def guarantee(self) -> Fraction | None:
        """Of an approximation: the part of the optimum that it has proved to reach, without knowing the optimum."""
        found = None if self.made is None else self.made.approximation
        return None if found is None else found.proved_ratio

    @property
    def fabric(self) -> Fabric:
        return self.question.fabric

    @property
    def inverse_rate(self) -> Fraction | float:
        """Seconds in which every rank moves one gigabyte of its own; the whole buffer where there is a root."""
        parts = 1 if self.question.collective in ROOTED else self.ranks
        return self.optimum.inverse_rate(parts) * GIGA

    def as_json(self) -> dict[str, object]:
        """One object for programs; bandwidths are bytes/s."""
        return {
            "collective": self.question.collective,
            "fabric": self.fabric.name,
            "ranks": self.ranks,
            "algbw": float(self.algbw),
            "optimal_algbw": float(self.optimum.algbw),
            "optimal_algbw_fraction": str(self.optimum.algbw) if self.optimum.exact else None,
            "exact": self.optimum.exact,
            "method": self.optimum.method,
            "inverse_rate": str(self.inverse_rate),
            "inverse_rate_unit": "s/GB",
            "bottleneck": self._bottleneck(),
            "cuts": [{**self._cut(cut), "weight": str(weight)} for cut, weight in self.optimum.cuts],
            "schedule": None if self.made is None else self.made.name,
            "trees": 0 if self.made is None else self.made.trees,
            "depth": 0 if self.made is None else self.made.depth,
            "segments": self.segments,
            "size_bytes": self.question.size_bytes,
            "start_up_s": self.question.start_up_s,
            "seconds": self.seconds,
            "simulated_algbw": self.simulated_algbw,
            "guarantee": None if self.guarantee is None else float(self.guarantee),
            "alternatives": {other.name: other.algbw for other in self.alternatives},
            "alternative_seconds": {other.name: other.seconds for other in self.alternatives},
            "left_out": {other.name: other.reason for other in self.alternatives if other.reason},
            "by_size": [
                {"size_bytes": at.size_bytes, "best": at.name, "seconds": at.seconds, "all_seconds": at.all_seconds}
                for at in self.by_size
            ],
            "notes": list(self.notes),
        }

    def _bottleneck(self) -> dict[str, object] | None:
        """The cut that alone limits the rate, or the one that weighs most among several that do so together."""
        if self.optimum.bottleneck is not None:
            return {**self._cut(self.optimum.bottleneck), "alone": True}
        if not self.optimum.cuts:
            return None
        heaviest, _ = max(self.optimum.cuts, key=lambda weighted: weighted[1])
        return {**self._cut(heaviest), "alone": False}

    def _cut(self, cut: Cut) -> dict[str, object]:
        names = self.fabric.node_names
        rank = {host: number for number, host in enumerate(self.network.members.tolist())}
        return {
            "ranks": [rank[host] for host in cut.members],
            "hosts": [names[host] for host in cut.members],
            "forwarders": [names[node] for node in cut.forwarders],
            "links": [self.fabric.link_name(link) for link in cut.links],
            "limits": [names[host] for host in cut.limits],
            "capacity_bytes_per_s": float(cut.capacity),
        }
