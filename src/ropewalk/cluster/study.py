"""One trace under several ways of sharing a cluster: the same jobs, the same plant, one replay for each way.

A way is how jobs get GPUs and links (the allocator) and how their flows find a spine (the routing). Isolation only
means something with source routing, so an isolated way always has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropewalk.cluster.failure import Failure
from ropewalk.cluster.job import Job
from ropewalk.cluster.occupancy import Occupancy
from ropewalk.cluster.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant
from ropewalk.cluster.paths import ROUTINGS
from ropewalk.cluster.plant import Plant
from ropewalk.cluster.policies import ALLOCATORS, OPTICAL
from ropewalk.cluster.policy import Allocate
from ropewalk.cluster.replay import replay
from ropewalk.cluster.timeline import Timeline
from ropewalk.errors import ClusterError

SHARED = "none"
"""Isolation by nobody: jobs get GPUs and share every link."""
Tell = Callable[[str, int, int, float], None]
"""Called with (way, jobs done, of how many, simulated seconds)."""


@dataclass(frozen=True)
class Way:
    """A way of sharing the cluster."""

    name: str
    allocate: Allocate
    routing: str
    about: str
    optical: bool = False

    def plant(self, plant: Plant, circuit_delay_s: float = DEFAULT_RECONFIGURATION_S) -> Plant:
        """The plant this way runs on: an optical one has switches in the middle of all leaf-spine cables.

        What is optical already keeps the delay of its own.
        """
        if self.optical and not isinstance(plant, OpticalPlant):
            return OpticalPlant.of_plant(plant, reconfiguration_s=circuit_delay_s)
        return plant

    def occupancy(self, plant: Plant) -> Occupancy:
        """An empty state of the plant as this way needs it."""
        return Occupancy(self.plant(plant))


_ABOUT = {
    "ecmp": "links shared, every flow on the spine its hash says",
    "ecmp-polarised": "links shared, the same hash at every switch",
    "balanced": "links shared, every flow on the way that carries least when its job starts",
    "source": "links shared, every GPU on the spine of its place on the leaf",
    "ideal": "links shared, and none of them ever holds a flow up",
    "vclos": "l leafs times s spines of its own for every job, in the published order of shapes",
    "vclos-all-divisors": "l leafs times s spines of its own, every divisor tried",
    "laas": "equal leafs and one remainder leaf, links of its own; rounds may still meet inside the job",
    "ocs-vclos": "circuits of its own for every job, set up when it starts",
    "ocs-vclos-all-divisors": "circuits of its own, every divisor tried",
}


def _ways() -> dict[str, Way]:
    found = {name: Way(name, ALLOCATORS[SHARED], name, _ABOUT[name]) for name in ROUTINGS}
    return found | {
        name: Way(name, allocate, "source", _ABOUT[name], optical=name in OPTICAL)
        for name, allocate in ALLOCATORS.items()
        if name != SHARED
    }


WAYS = _ways()
"""By name: routings without isolation under their own name, isolated ways under that of their allocator."""
ISOLATIONS = tuple(name for name in ALLOCATORS if name != SHARED)
COMPARED = ("ecmp", "source", "ocs-vclos", "ideal")
"""What an isolation is shown beside unless asked otherwise."""
ORDER = ("ecmp-polarised", "ecmp", "balanced", "source", "laas", "vclos", "vclos-all-divisors", *OPTICAL, "ideal")


def ways_named(isolations: Sequence[str], routings: Sequence[str] | None, *, compare: bool) -> tuple[Way, ...]:
    """The ways to replay, from least to most orderly.

    Routings belong to jobs that share links: they are replayed where they are named, where isolation `none` is, and in
    comparisons.

    >>> [way.name for way in ways_named(["vclos"], None, compare=True)]
    ['ecmp', 'source', 'vclos', 'ocs-vclos', 'ideal']
    >>> [way.name for way in ways_named(["none"], ["ecmp"], compare=False)]
    ['ecmp']
    """
    for name in isolations:
        if name != SHARED and name not in ISOLATIONS:
            raise ClusterError(f"there is no isolation {name!r}: choose of {', '.join((*ISOLATIONS, SHARED))}")
    for name in routings or ():
        if name not in ROUTINGS:
            raise ClusterError(f"there is no routing {name!r}: choose of {', '.join(ROUTINGS)}")
    wanted = {name for name in isolations if name != SHARED}
    if routings is not None:
        wanted |= set(routings)
    elif SHARED in isolations:
        wanted.add("ecmp")
    if compare:
        wanted |= {name for name in COMPARED if routings is None or name not in ROUTINGS}
    if not wanted:
        raise ClusterError("there is nothing to replay: name an isolation or a routing")
    return tuple(WAYS[name] for name in ORDER if name in wanted)


@dataclass(frozen=True, eq=False)
class ClusterStudy:
    """Every way's replay of the same jobs."""

    plant: Plant
    trace: str
    """What the jobs are called: a file, or the recipe of a synthetic trace."""
    ways: tuple[Way, ...]
    timelines: tuple[Timeline, ...]
    notes: tuple[str, ...] = ()

    def timeline(self, name: str) -> Timeline:
        return self.timelines[[way.name for way in self.ways].index(name)]

    def as_json(self, *, jobs: bool = False) -> dict[str, Any]:
        """Numbers of every way; with `jobs` also what became of every job, and the cluster over time."""
        first = self.timelines[0]
        return {
            "plant": self.plant.name,
            "gpus": self.plant.gpus,
            "trace": self.trace,
            "queue": first.queue,
            "backfill": first.backfill,
            "seed": first.seed,
            "kinds": {
                way.name: {"isolation": way.name if way.name in ISOLATIONS else SHARED, "routing": way.routing}
                | (timeline.as_document() if jobs else timeline.summary())
                for way, timeline in zip(self.ways, self.timelines, strict=True)
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Conditions:
    """What all ways have in common."""

    queue: str = "fifo"
    backfill: str | None = None
    seed: int = 0
    circuit_delay_s: float = DEFAULT_RECONFIGURATION_S
    """From the start of a job with optical circuits to its first byte."""
    failures: tuple[Failure, ...] = ()
    when_a_link_dies: str = "ecmp"
    """What a job with links of its own does then: a name of `WHEN_A_LINK_DIES`."""

    def fit(self, way: Way) -> bool:
        """An optical way has fibres to switches and no links from leafs to spines that could die."""
        return not (way.optical and any(failure.parts.links for failure in self.failures))


def study(
    plant: Plant,
    jobs: Sequence[Job],
    ways: Sequence[Way],
    conditions: Conditions,
    *,
    trace: str = "jobs",
    notes: Sequence[str] = (),
    tell: Tell | None = None,
    checkpoint: Path | None = None,
) -> ClusterStudy:
    """Replay the jobs once for every way. With a checkpoint, a replay that was stopped goes on where it was.

    Each way has a file of its own, named after the checkpoint and the way.
    """
    timelines = []
    left_out = [way.name for way in ways if not conditions.fit(way)]
    ways = [way for way in ways if conditions.fit(way)]
    if not ways:
        raise ClusterError(
            f"links from leafs to spines cannot die under {', '.join(left_out)}: let a spine or leaf die"
        )
    notes = [*notes, *(f"{name} is left out: it has no leaf-spine links that could die" for name in left_out)]
    for way in ways:
        file = None if checkpoint is None else checkpoint_of(checkpoint, way)
        timelines.append(
            replay(
                way.plant(plant, conditions.circuit_delay_s),
                jobs,
                allocate=way.allocate,
                routing=way.routing,
                queue=conditions.queue,
                backfill=conditions.backfill,
                seed=conditions.seed,
                failures=conditions.failures,
                when_a_link_dies=conditions.when_a_link_dies,
                policy=way.name,
                progress=_told(tell, way.name),
                checkpoint=file,
                resume=file is not None and file.exists(),
            )
        )
    return ClusterStudy(plant, trace, tuple(ways), tuple(timelines), tuple(notes))


def checkpoint_of(base: Path, way: Way) -> Path:
    """Where the replay of one way is kept while it runs.

    >>> str(checkpoint_of(Path("run.json"), WAYS["vclos"]))
    'run.vclos.json'
    """
    return base.with_name(f"{base.stem}.{way.name}{base.suffix}")


def _told(tell: Tell | None, name: str) -> Callable[[int, int, float], None] | None:
    if tell is None:
        return None
    return lambda done, total, now: tell(name, done, total, now)


def state_at(
    way: Way,
    plant: Plant,
    timeline: Timeline,
    when_s: float,
    *,
    without: str | None = None,
    failures: Sequence[Failure] = (),
) -> Occupancy:
    """Who held what at a moment of a replay, also of jobs that a failure sent elsewhere later; and what was dead."""
    state = way.occupancy(plant)
    held = [(job, place) for job in timeline.jobs if (place := job.place_at(when_s)) is not None]
    for _, place in sorted(held, key=lambda pair: (pair[0].arrival_s, pair[0].name)):
        if place.job != without:
            state.place(place)
    for failure in failures:
        if failure.at_s <= when_s < failure.until_s:
            state.drain(failure.parts)
    return state
