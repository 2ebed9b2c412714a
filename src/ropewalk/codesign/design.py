"""A design: the question, the wiring, rings, routes and seats that were chosen, their times, and all comparisons.

It holds what is needed to build the network and to run the plan again, and nothing that differs from run to run, so
that the same question gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ropewalk import __version__
from ropewalk.codesign.alternate import Turn
from ropewalk.codesign.question import PlanQuestion
from ropewalk.documents import decode, parse_json, read_bytes
from ropewalk.errors import StrategyError
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.strategy.seating import Manner, Seat, Seating

FORMAT = "ropewalk plan 1"


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
class Compared:
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
    baselines: dict[str, Compared]
    history: tuple[Turn, ...]
    ended: str
    notes: tuple[str, ...] = ()
    micro_batches: int = 1
    """Equal parts of a step's batch, all forward before all backward."""
    version: str = __version__

    def speed_up(self, name: str) -> float:
        """How many times as long a baseline takes."""
        return self.baselines[name].step_time_s / self.step_time_s

    def as_json(self) -> dict[str, Any]:
        """Plain values, the most asked-for first."""
        wiring = self.wiring
        return {
            "format": FORMAT,
            "model": self.question.model,
            "step_time_s": self.step_time_s,
            "compute_s": self.compute_s,
            "exposed_communication_s": self.exposed_communication_s,
            "estimate_s": self.estimate_s,
            "tax": self.tax,
            "cost": self.cost,
            "baselines": {
                name: asdict(row) | {"speed_up": self.speed_up(name)} for name, row in self.baselines.items()
            },
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
            "allreduce_bytes": self.allreduce_bytes,
            "mp_bytes": self.mp_bytes,
            "routes": asdict(self.routes),
            "strategy": [
                {"layer": layer, "manner": seat.manner.value, "degree": seat.degree, "servers": list(seat.servers)}
                for layer, seat in zip(self.layers, self.seating.seats, strict=True)
            ],
            "micro_batches": self.micro_batches,
            "history": [asdict(turn) for turn in self.history],
            "ended": self.ended,
            "seed": self.question.seed,
            "question": self.question.as_json(),
            "notes": list(self.notes),
            "versions": {"ropewalk": self.version},
        }

    def dumps(self) -> str:
        """The text of plan.json."""
        return _written(self.as_json()) + "\n"

    @staticmethod
    def from_json(record: dict[str, Any]) -> Design:
        """The design that `as_json` wrote."""
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise StrategyError(f"this is not a plan: its format is not {FORMAT!r}; give a file that --plan wrote")
        try:
            return _read(record)
        except (KeyError, TypeError, ValueError) as problem:
            raise StrategyError(f"the plan cannot be read ({problem!r}): write it anew with --plan") from None


def _written(value: Any, indent: str = "") -> str:
    """JSON with an entry a line, where numbers of a list stand side by side."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key)}: {_written(entry, inner)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        return "[\n" + ",\n".join(inner + _written(entry, inner) for entry in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def read_design(path: str | Path) -> Design:
    """A design from plan.json."""
    subject = f"plan {path}"
    text = decode(read_bytes(Path(path), subject, StrategyError), subject, StrategyError)
    record = parse_json(text, subject, StrategyError)
    if not isinstance(record, dict):
        raise StrategyError(f"{subject} is not an object: give a file that --plan wrote")
    return Design.from_json(record)


def _read(record: dict[str, Any]) -> Design:
    topology = record["topology"]
    servers = topology["hosts"]
    wiring = Wiring(
        servers,
        topology["degree"],
        topology["duplex"],
        topology["bandwidth_bytes_per_s"],
        topology["latency_s"],
        tuple(GroupRings(one["size"], tuple(one["jumps"]), one["wired"]) for one in record["rings"]),
        tuple((a, b, count) for a, b, count in topology["links"]),
        record["degree_allreduce"],
        record["degree_mp"],
    )
    seats = tuple(Seat(tuple(row["servers"]), Manner(row["manner"])) for row in record["strategy"])
    baselines = {
        name: Compared(row["step_time_s"], row["cost"], row["about"], row["strategy_of"])
        for name, row in record["baselines"].items()
    }
    return Design(
        question=PlanQuestion.from_json(record["question"]),
        layers=tuple(row["layer"] for row in record["strategy"]),
        seating=Seating(servers, seats),
        wiring=wiring,
        routes=RouteFacts(**record["routes"]),
        step_time_s=record["step_time_s"],
        compute_s=record["compute_s"],
        exposed_communication_s=record["exposed_communication_s"],
        estimate_s=record["estimate_s"],
        tax=record["tax"],
        allreduce_bytes=record["allreduce_bytes"],
        mp_bytes=record["mp_bytes"],
        cost=record["cost"],
        baselines=baselines,
        history=tuple(Turn(**turn) for turn in record["history"]),
        ended=record["ended"],
        notes=tuple(record["notes"]),
        micro_batches=record["micro_batches"],
        version=record["versions"]["ropewalk"],
    )
