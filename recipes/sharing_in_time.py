"""CASSINI and Crux on one link: the examples of their papers, as far as they are public.

python recipes/sharing_in_time.py                       lists them
python recipes/sharing_in_time.py NAME

One cable joins two leafs; every job is a ring over both, so that it has one flow on the cable in each direction, as
fast as a NIC. What the papers say and where that was found stands in `docs/cluster.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.pacing.circle import best_turns, mean_score, perimeter
from ropewalk.tenancy.pacing.in_turns import STEPS
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.snapshot.tasks import written_together
from ropewalk.tenancy.snapshot.tenant import Moment, Tenant
from ropewalk.tenancy.snapshot.wires import wires_of
from ropewalk.tenancy.work import Iteration, JobExchange


@dataclass(frozen=True)
class Ring:
    """A job over both leafs of the cable."""

    name: str
    gpus: int
    iteration_s: float
    """Alone."""
    share: float
    """Part of it on the cable."""


def one_cable(jobs: Sequence[Ring]) -> tuple[Plant, list[Tenant]]:
    """The jobs under two leafs that one cable joins, half of each on either side."""
    half = sum(job.gpus for job in jobs) // 2
    where = plant(f"leaf-spine:2x1x{half}", gpus_per_server=1)
    quiet, tenants, first = SharedNetwork(where, "ecmp", 0), [], 0
    for number, job in enumerate(jobs):
        mine = range(first, first + job.gpus // 2)
        first += job.gpus // 2
        held = Allocation(
            job=job.name, gpus=(*mine, *(half + gpu for gpu in mine)), stage="shared", leafs=(0, 1), spines=(),
            links=(), spine_of_gpu=(-1,) * job.gpus, leaf_of_gpu=(0,) * len(mine) + (1,) * len(mine), guarantee="none",
        )  # fmt: skip
        seconds_per_byte = quiet.footprint(Iteration(0.0, (JobExchange("ring", 1.0),)), held).alone_iteration_s
        sends_s = job.share * job.iteration_s
        work = Iteration(job.iteration_s - sends_s, (JobExchange("ring", sends_s / seconds_per_byte),))
        tenants.append(Tenant(held, quiet.footprint(work, held), number))
    return where, tenants


def iterations_s(where: Plant, tenants: Sequence[Tenant], routing: str) -> list[float]:
    """Mean iteration of every job by the model of the replay."""
    network = SharedNetwork(where, routing, 0)
    for tenant in tenants:
        network.start(tenant.name, tenant.number, network.footprint(tenant.footprint.work, tenant.allocation))
    network.settle()
    return [network.pace(tenant.name).iteration_s for tenant in tenants]


def simulated_s(where: Plant, tenants: Sequence[Tenant], start_s: Sequence[float], iterations: int = 6) -> list[float]:
    """Iterations when jobs start at these times and share the cable fairly, event by event: the mean of each job."""
    begun = [replace(tenant, start_s=at_s) for tenant, at_s in zip(tenants, start_s, strict=True)]
    moment = Moment(where, POLICIES["ecmp"], 0, tuple(begun), "on one cable")
    tasks = written_together(wires_of(moment), begun, [iterations] * len(begun))
    trace = run_at_level(tasks.graph, tasks.routes, LevelUse("flow"), seed=0, symmetry=False).trace
    return [float(np.diff(end)[: iterations - 1].mean()) for end in tasks.ends_s(trace.end)]


# CASSINI (NSDI 2024).


@dataclass(frozen=True)
class Turns:
    """Equal jobs on one link: iterations over those alone."""

    jobs: int
    share: float
    together: float
    """Fair sharing, all in step: what a job meets at worst, and never gets out of."""
    at_random: float
    """Fair sharing, started at random."""
    cassini: float
    score: float
    """Of the best rotation."""

    @property
    def mean_gain(self) -> float:
        return self.at_random / self.cassini

    @property
    def worst_gain(self) -> float:
        return self.together / self.cassini


def equal_jobs_on_one_link(jobs: int, share: float) -> Turns:
    """So many equal jobs that send for this part of an iteration."""
    rings = [Ring(f"job{number}", 4, 1.0, share) for number in range(jobs)]
    where, tenants = one_cable(rings)
    busy = round(share * STEPS)
    circle = [np.array([1.0] * busy + [0.0] * (STEPS - busy))] * jobs
    return Turns(
        jobs,
        share,
        float(np.mean(simulated_s(where, tenants, [0.0] * jobs))),
        float(np.mean(iterations_s(where, tenants, "ecmp"))),
        float(np.mean(iterations_s(where, tenants, "cassini"))),
        best_turns(circle)[1],
    )


def two_to_four_jobs_on_one_link() -> list[Turns]:
    """By how much turns shorten iterations, by the part of an iteration that jobs send."""
    return [
        equal_jobs_on_one_link(jobs, share) for jobs in (2, 3, 4) for share in (0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.6)
    ]


def circle_of_40_and_60_ms() -> dict[str, float]:
    """Jobs of 40 and 60 ms that each send for 10 ms, in steps of 1 ms: the unified circle has 120."""
    circles = [np.array([1.0] * 10 + [0.0] * 30), np.array([1.0] * 10 + [0.0] * 50)]
    turns, score = best_turns(circles)
    return {"perimeter_ms": float(perimeter(circles) or 0), "score": score, "out of step": mean_score(circles),
            "shift_ms": float(turns[1])}  # fmt: skip


# Crux (SIGCOMM 2024).

GPT_S, BERT_S = 1.53, 0.6
"""A GPT's iteration alone as published, and what is taken for BERT, whose is not public."""


@dataclass(frozen=True)
class Contended:
    """Two jobs on one link: by which part iterations are longer than alone, and GPU time spent computing."""

    policy: str
    gpt: float
    bert: float
    utilisation: float
    """Of both jobs' GPUs, over that alone."""

    @property
    def gpt_throughput(self) -> float:
        return 1 / (1 + self.gpt) - 1

    @property
    def bert_throughput(self) -> float:
        return 1 / (1 + self.bert) - 1


def gpt_beside_bert(share: float = 0.325) -> list[Contended]:
    """GPT on 32 GPUs and BERT on 8, both on the link for this part of an iteration: fair sharing, then Crux.

    The share is the one number that is fitted: 0.325 gives the published loss of utilisation under fair sharing.
    """
    where, tenants = one_cable([Ring("gpt", 32, GPT_S, share), Ring("bert", 8, BERT_S, share)])
    found = []
    for name in ("ecmp", "crux"):
        gpt, bert = (
            iteration / alone - 1
            for iteration, alone in zip(iterations_s(where, tenants, name), (GPT_S, BERT_S), strict=True)
        )
        found.append(Contended(name, gpt, bert, (32 / (1 + gpt) + 8 / (1 + bert)) / 40))
    return found


def show(name: str) -> None:
    if name == two_to_four_jobs_on_one_link.__name__:
        print("| jobs | share | in step | at random | CASSINI | score | mean gain | worst gain |")
        print("|--:|--:|--:|--:|--:|--:|--:|--:|")
        for row in two_to_four_jobs_on_one_link():
            print(
                f"| {row.jobs} | {row.share:.0%} | {row.together:.2f} | {row.at_random:.2f} | {row.cassini:.2f} "
                f"| {row.score:.2f} | {row.mean_gain:.2f}× | {row.worst_gain:.2f}× |"
            )
    elif name == circle_of_40_and_60_ms.__name__:
        print(", ".join(f"{what} {value:g}" for what, value in circle_of_40_and_60_ms().items()))
    elif name == gpt_beside_bert.__name__:
        for row in gpt_beside_bert():
            print(
                f"{row.policy}: GPT {GPT_S * (1 + row.gpt):.2f} s ({row.gpt:+.1%}), throughput "
                f"{row.gpt_throughput:+.1%} and {row.bert_throughput:+.1%}, utilisation {row.utilisation - 1:+.1%}"
            )
    else:
        print(
            "\n".join(one.__name__ for one in (two_to_four_jobs_on_one_link, circle_of_40_and_60_ms, gpt_beside_bert))
        )


if __name__ == "__main__":
    show(sys.argv[1] if len(sys.argv) > 1 else "")
