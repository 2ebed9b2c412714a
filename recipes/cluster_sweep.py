"""How much sooner than ECMP, how far from ideal: seven policies on four clusters, three traces, loads from 0.5 to 1.0.

python recipes/cluster_sweep.py run [--to FOLDER] [--philly FILE] [--minutes 20] [--seeds 0,1,2] [--clusters 512]
python recipes/cluster_sweep.py run --logs FILE,FILE [--published]     logs alone; with the published mix of models
python recipes/cluster_sweep.py table [--to out/cluster_sweep]         Markdown
python recipes/cluster_sweep.py chart [--to out/cluster_sweep] FILE    SVG

Every point (trace, cluster, load, seed) is replayed under all policies and kept in a file of its own; what is there is
not run again, so a run that was stopped continues. `--minutes` counts CPU time of this process: no point begins later.
Seeds come before loads and loads before clusters, so that a run that ends early has a little of everything.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from ropewalk.cli.screen import shown_progress
from ropewalk.files import write_whole
from ropewalk.progress import Progress
from ropewalk.report.cluster_verdict import signed
from ropewalk.tenancy.measures import MEASURES
from ropewalk.tenancy.of_trace import jobs_of
from ropewalk.tenancy.placements.table import PACKED
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES, sharing
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.routings import ROUTINGS
from ropewalk.tenancy.spread import Spread, sooner
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.traces import (
    DURATIONS,
    SIZES,
    Mix,
    Preparation,
    Synthetic,
    TraceJob,
    mean_gap_for,
    poisson,
    prepare,
    read_trace,
)


@dataclass(frozen=True)
class Cluster:
    """Where jobs run, and how servers are chosen where they share links."""

    fabric: str
    gpus: int
    jobs: int
    """Of a trace."""
    placement: str = PACKED


CLUSTERS = {
    "512": Cluster("leaf-spine:32x16x16", 512, 500),
    "2048": Cluster("leaf-spine:64x32x32", 2048, 500),
    "8192": Cluster("leaf-spine:128x64x64", 8192, 500),
    "32768": Cluster("leaf-spine:256x128x128", 32768, 500),
    "512-random": Cluster("leaf-spine:32x16x16", 512, 500, "random"),
    "512-half": Cluster("leaf-spine:32x8x16", 512, 500),
}
"""Two tiers of switches with 32, 64, 128 and 256 ports; servers at random; half as many cables up as GPUs."""
GPUS_PER_SERVER = 4
LOADS = (0.5, 0.7, 0.9, 1.0)
STRETCHES = 5
"""Seeds of a log that have jobs of their own."""
SHORTEST_S, LONGEST_S = 600.0, 6000.0
"""Durations are clipped to these, so that a trace lasts many times as long as its longest job."""
SHARED = ("ecmp", "cassini", "crux", "source")
ISOLATED = ("vclos", "ocs-vclos")
SWEPT = (*SHARED, *ISOLATED, "ideal")
ADDED = ("laas", "topoopt")
"""Shown where they were added with `--again`."""
LEAST = 0.01
"""Percent below which a chart shows no difference."""


# The traces: (GPUs of the cluster, load, seed, jobs) -> jobs with arrivals.

Drawn = Callable[[int, float, int, int], Sequence[TraceJob]]


def helios(gpus: int, load: float, seed: int, jobs: int) -> Sequence[TraceJob]:
    """Sizes of the 10,000 jobs in the vClos authors' simulator, durations as on Helios.

    Sizes end at a quarter of the cluster; above 2,048 GPUs they grow with it (4 times on 8,192, 16 times on 32,768).
    """
    grown = _grown(_synthetic("histogram-10000", min(gpus, 2048), load, seed, jobs), max(1, gpus // 2048))
    return _arriving(grown, load, gpus, seed)


def tpu_slices(gpus: int, load: float, seed: int, jobs: int) -> Sequence[TraceJob]:
    """Sizes of TPU v4 slices, 32 to 2,048 and at most a quarter of the cluster; durations as on Helios."""
    return _arriving(_synthetic("tpu-v4-slices", gpus, load, seed, jobs), load, gpus, seed)


def logged(file: Path, *, published: bool = False) -> Drawn:
    """Jobs of a log, such as Philly's as Muri's authors prepared them, with the network shares that they measured.

    A seed takes another stretch of the log, none of which overlap: a fifth of it, or less where that is longer than
    asked. Philly's largest job has 32 GPUs; on clusters above 512 GPUs all sizes grow with the cluster (64 times on
    32,768), because 5,755 jobs of 5 GPUs could not load them. `published` forgets what jobs train, so that the
    published mix is drawn for them.
    """
    whole = read_trace(file).jobs

    def drawn(gpus: int, load: float, seed: int, jobs: int) -> Sequence[TraceJob]:
        count = min(jobs, len(whole) // STRETCHES)
        first = seed % STRETCHES * count
        clipped = prepare(whole[first : first + count], Preparation(SHORTEST_S, LONGEST_S))
        told = [_nameless(job) for job in clipped] if published else clipped
        return _arriving(_grown(told, gpus // 512), load, gpus, seed)

    return drawn


def _nameless(job: TraceJob) -> TraceJob:
    return replace(job, model=None, batch=None, communication_share=None, iterations=None)


def _synthetic(sizes: str, gpus: int, load: float, seed: int, jobs: int) -> Sequence[TraceJob]:
    durations = replace(DURATIONS["helios"], shortest_s=SHORTEST_S, longest_s=LONGEST_S)
    return Synthetic(jobs, gpus, load=load, sizes=SIZES[sizes].up_to(gpus // 4), durations=durations, seed=seed).build()


def _grown(jobs: Sequence[TraceJob], factor: int) -> Sequence[TraceJob]:
    return [replace(job, gpus=job.gpus * factor) for job in jobs]


def _arriving(jobs: Sequence[TraceJob], load: float, gpus: int, seed: int) -> Sequence[TraceJob]:
    """As a Poisson process that asks for this part of the cluster."""
    return poisson(jobs, mean_gap_for(jobs, load, gpus), seed)


# Points and their files.


@dataclass(frozen=True)
class Point:
    """One trace on one cluster at one load, drawn with one seed."""

    trace: str
    cluster: str
    load: float
    seed: int

    def file(self, folder: Path) -> Path:
        return folder / f"{self.trace}-{self.cluster}-{self.load:g}-{self.seed}.json"


def points(
    traces: Sequence[str], clusters: Sequence[str], loads: Sequence[float], seeds: Sequence[int]
) -> Iterator[Point]:
    for seed in seeds:
        for load in loads:
            for cluster in clusters:
                for trace in traces:
                    yield Point(trace, cluster, load, seed)


def replayed(
    point: Point, drawn: Drawn, names: Sequence[str] = SWEPT, progress: Progress | None = None
) -> dict[str, Any]:
    """What every policy makes of the same jobs: all measures, by policy."""
    cluster = CLUSTERS[point.cluster]
    where = plant(cluster.fabric, GPUS_PER_SERVER)
    jobs = jobs_of(drawn(where.gpus, point.load, point.seed, cluster.jobs), where, seed=point.seed, mix=Mix())
    policies = {
        name: sharing(ROUTINGS[name], cluster.placement) if name in SHARED else POLICIES.named(name) for name in names
    }
    began = time.process_time()
    question = ClusterQuestion(where, jobs, tuple(policies.values()), Conditions(seed=point.seed), point.trace)
    found = answer(question, progress)
    return {
        "trace": point.trace,
        "cluster": point.cluster,
        "gpus": where.gpus,
        "placement": cluster.placement,
        "load": point.load,
        "seed": point.seed,
        "jobs": len(jobs),
        "mean_gpus": sum(job.gpus for job in jobs) / len(jobs),
        "cpu_s": time.process_time() - began,
        "policies": {
            name: {one.name: one.of(found.timeline(policy.name)) for one in MEASURES}
            for name, policy in policies.items()
        },
    }


def run(
    folder: Path,
    asked: Sequence[Point],
    traces: dict[str, Drawn],
    minutes: float,
    again: Sequence[str] = (),
    policies: Sequence[str] = SWEPT,
) -> None:
    """Everything that is not there yet, until it is all there or the CPU minutes are over.

    `again` are policies that are replayed anew, or for the first time, at the points that are there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began = time.process_time()
    with shown_progress("replaying") as progress:
        for number, point in enumerate(asked):
            file = point.file(folder)
            if file.exists() != bool(again):  # it may be there by another process that was started with other seeds
                continue
            if time.process_time() - began > 60 * minutes:
                print(f"{minutes:g} CPU minutes are over before {file.name}, point {number + 1} of {len(asked)}")
                return
            progress(number, len(asked), f"{point.trace} on {point.cluster}, load {point.load:g}, seed {point.seed}")
            found = replayed(point, traces[point.trace], again or policies)
            took_s = found["cpu_s"]
            if again:
                before = json.loads(file.read_text())
                found = before | {"policies": before["policies"] | found["policies"], "cpu_s": before["cpu_s"] + took_s}
            write_whole(file, json.dumps(found, indent=1))
            print(f"{file.name}: {took_s:.1f} s", flush=True)


# What was found.


@dataclass(frozen=True)
class Row:
    """One trace on one cluster at one load, all seeds."""

    trace: str
    cluster: str
    load: float
    seeds: tuple[dict[str, Any], ...]

    def values(self, policy: str, measure: str = "mean_jct_s") -> list[float]:
        return [one["policies"][policy][measure] for one in self.seeds]

    def sooner(self, policy: str, other: str = "ecmp") -> Spread:
        """By which part jobs complete sooner than under another policy."""
        return sooner(self.values(policy), self.values(other))

    def has(self, policy: str) -> bool:
        return all(policy in one["policies"] for one in self.seeds)

    def later(self, policy: str, other: str = "ideal") -> Spread:
        return Spread(tuple(a / b - 1 for a, b in zip(self.values(policy), self.values(other), strict=True)))

    def closed(self, policy: str) -> Spread | None:
        """Which part of the gap between ECMP and the ideal network a policy closes; None where there is hardly one."""
        gap = [a / b - 1 for a, b in zip(self.values("ecmp"), self.values("ideal"), strict=True)]
        if min(gap) < 0.01:
            return None
        later = self.later(policy).values
        return Spread(tuple(1 - mine / whole for mine, whole in zip(later, gap, strict=True)))


def read(folder: Path) -> list[Row]:
    """All points that are there, by trace, cluster and load."""
    kept: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.json")):
        one = json.loads(file.read_text())
        kept.setdefault((one["trace"], one["cluster"], one["load"]), []).append(one)
    return [Row(*key, tuple(sorted(found, key=lambda one: one["seed"]))) for key, found in sorted(kept.items())]


def table(rows: Sequence[Row]) -> str:
    """Mean completion above that on the ideal network."""
    shown = [name for name in (*SWEPT, *ADDED) if name != "ideal" and any(row.has(name) for row in rows)]
    heads = ["trace", "cluster", "load", "seeds", "in use", *shown]
    lines = [f"| {' | '.join(heads)} |", "|---|---|--:|--:|--:|" + "--:|" * (len(heads) - 5)]
    order = list(CLUSTERS)
    for row in sorted(rows, key=lambda row: (row.trace, order.index(row.cluster), row.load)):
        used = Spread(tuple(row.values("ideal", "gpu_utilisation"))).mean
        cells = [row.trace, row.cluster, f"{row.load:g}", str(len(row.seeds)), f"{used:.0%}"]
        cells += [signed(row.later(name)) if row.has(name) else "" for name in heads[5:]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chart(rows: Sequence[Row], file: Path, load: float = 0.9) -> None:
    """A panel for every trace: completion above the ideal network over the size of the cluster."""
    from chart import Panel, Series, write_chart

    named = {
        "ecmp": "ECMP and CASSINI",
        "vclos": "vClos",
        "source": "source routing",
        "crux": "Crux",
        "ocs-vclos": "OCS-vClos",
    }
    panels = []
    for trace in sorted({row.trace for row in rows}):
        mine = [row for row in rows if row.trace == trace and row.load == load and row.cluster.isdigit()]
        mine.sort(key=lambda row: int(row.cluster))
        series = [
            Series(words, [(int(row.cluster), max(100 * row.later(name).mean, LEAST)) for row in mine])
            for name, words in named.items()
        ]
        panels.append(Panel(f"{trace}, load {load:g}", "GPUs", f"% above ideal, {LEAST:g} stands for less", series))
    write_chart(panels, file)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "chart"))
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--to", type=Path, default=Path("out/cluster_sweep"))
    parser.add_argument(
        "--philly", type=Path, help="Philly's jobs as Muri's authors prepared them; left out unless given"
    )
    parser.add_argument("--logs", default="", help="logs of jobs, read as `ropewalk cluster` does: these alone")
    parser.add_argument("--published", action="store_true", help="logs with the published mix of models instead")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--again", default="", help="policies to replay anew, or to add, where points are there")
    parser.add_argument("--policies", default=",".join(SWEPT), help="at points that are not there yet")
    parser.add_argument("--clusters", default=",".join(CLUSTERS))
    parser.add_argument("--loads", default=",".join(map(str, LOADS)))
    given = parser.parse_args(arguments)
    if given.what == "table":
        print(table(read(given.to)))
        return
    if given.what == "chart":
        chart(read(given.to), given.file or Path("docs/images/cluster-sweep.svg"))
        return
    traces: dict[str, Drawn] = {"helios": helios, "tpu-slices": tpu_slices}
    if given.philly is not None:
        traces["philly"] = logged(given.philly)
    if given.logs:
        mixed = "-published" if given.published else ""
        files = [Path(one) for one in given.logs.split(",")]
        traces = {f"{one.stem}{mixed}": logged(one, published=given.published) for one in files}
    loads = [float(one) for one in given.loads.split(",")]
    seeds = [int(one) for one in given.seeds.split(",")]
    asked = list(points(list(traces), given.clusters.split(","), loads, seeds))
    again = [one for one in given.again.split(",") if one]
    run(given.to, asked, traces, given.minutes, again, given.policies.split(","))


if __name__ == "__main__":
    main(sys.argv[1:])
