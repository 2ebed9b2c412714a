"""A design: the question, the wiring, rings, routes and seats that were chosen, their times, and all comparisons.

It holds nothing that differs from run to run, so that the same question gives the same bytes. The file that every
command reads is made of it by `planned.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ropewalk import __version__
from ropewalk.codesign.alternate import HistoryEntry
from ropewalk.codesign.question import PlanQuestion
from ropewalk.documents import json_text
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seating
from ropewalk.training.checked import Expected


@dataclass(frozen=True)
class RouteFacts:
    """The routes in numbers; the digest tells whether a rerun has the very same ones."""

    count: int
    """Pairs of servers that have routes."""
    max_hops: int
    mean_hops: float
    """Over pairs, paths of a pair by their shares."""
    digest: str


@dataclass(frozen=True)
class TimedBaseline:
    """A baseline, timed."""

    step_time_s: float
    cost: float
    """Dollars of the whole network."""
    about: str
    strategy_of: str | None
    """Whose strategy it ran; None: its own search."""


@dataclass(frozen=True)
class Design:
    """What was planned."""

    question: PlanQuestion
    layers: tuple[str, ...]
    """Names of the layers that the seats are of."""
    seating: Seating
    wiring: Wiring
    routes: RouteFacts
    step_time_s: float
    """By flow simulation of the whole step."""
    expected: Expected
    """The interval around it."""
    compute_s: float
    """Mean over servers of the time in which they compute."""
    exposed_communication_s: float
    estimate_s: float
    """What the search took it for."""
    tax: float
    allreduce_bytes: float
    """Bytes of all sums on the wire."""
    mp_bytes: float
    cost: float
    """Dollars of the whole network."""
    baselines: dict[str, TimedBaseline]
    history: tuple[HistoryEntry, ...]
    ended: str
    notes: tuple[str, ...] = ()
    collectives: str = "ring"
    """What sums run: `ring`, those of the wiring, or trees that were made for it, `data=forest`."""
    micro_batches: int = 1
    """Equal parts of a step's batch, all forward before all backward."""
    cost_source: str = ""
    """Where the times of computations come from."""
    version: str = __version__

    def speed_up(self, name: str) -> float:
        """How many times as long a baseline takes."""
        return self.baselines[name].step_time_s / self.step_time_s

    def as_json(self) -> dict[str, Any]:
        """Plain values, the most asked-for first."""
        wiring = self.wiring
        return {
            "model": self.question.model,
            "step_time_s": self.step_time_s,
            "interval": asdict(self.expected),
            "compute_s": self.compute_s,
            "exposed_communication_s": self.exposed_communication_s,
            "estimated_step_time_s": self.estimate_s,
            "tax": self.tax,
            "cost": self.cost,
            "baselines": {name: asdict(row) | {"speedup": self.speed_up(name)} for name, row in self.baselines.items()},
            "topology": {
                "hosts": wiring.servers,
                "degree": wiring.degree,
                "duplex": wiring.duplex,
                "bandwidth_bytes_per_s": wiring.bandwidth,
                "latency_s": wiring.latency,
                "links": [list(cable) for cable in wiring.cables],
            },
            "permutations": {str(rings.size): list(rings.jumps) for rings in wiring.rings},
            "rings": [asdict(rings) | {"jumps": list(rings.jumps)} for rings in wiring.rings],
            "degree_allreduce": wiring.degree_sums,
            "degree_mp": wiring.degree_pairs,
            "all_reduce_bytes": self.allreduce_bytes,
            "mp_bytes": self.mp_bytes,
            "routes": asdict(self.routes),
            "strategy": [
                {"layer": layer, "manner": seat.manner.value, "degree": seat.degree, "servers": list(seat.servers)}
                for layer, seat in zip(self.layers, self.seating.seats, strict=True)
            ],
            "collectives": self.collectives,
            "micro_batches": self.micro_batches,
            "history": [asdict(turn) for turn in self.history],
            "ended": self.ended,
            "cost_source": self.cost_source,
            "seed": self.question.seed,
            "question": self.question.as_json(),
            "notes": list(self.notes),
            "versions": {"ropewalk": self.version},
        }

    def dumps(self) -> str:
        """The text that `ropewalk plan --json` prints."""
        return json_text(self.as_json())
