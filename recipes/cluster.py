"""Studies of many jobs on one cluster, one function a study: its name says what is trained, where, at which scale.

python recipes/cluster.py                                         lists them
python recipes/cluster.py NAME [--page FILE] [--load 0.8] [--jobs 5000] [--policies vclos,ideal]
python recipes/cluster.py philly_as_muri_prepared_it_on_lingjun --trace FILE --leafs FILE [--gpus-per-server 1]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ropewalk.cli.screen import shown_progress
from ropewalk.report.cluster import cluster_page
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.compared import of_one
from ropewalk.tenancy.decided import by_degrees
from ropewalk.tenancy.imports import AssumedCabling, read_plant
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.of_trace import jobs_of
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES, Policy, policies_named
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.stepped import work_of_step
from ropewalk.tenancy.study import ClusterStudy, answer
from ropewalk.tenancy.traces import DURATIONS, SIZES, Sizes, Synthetic, mean_gap_for, poisson, read_trace
from ropewalk.tenancy.work import Iteration, JobExchange

GBPS = 1e9 / 8
SEEDS = 12
"""Hashes that a mean is taken over."""


# Contention between two jobs, by model, batch and link speed.


@dataclass(frozen=True)
class Trained:
    """A model as the contention study trains it on 16 GPUs."""

    name: str
    zoo: str
    batches: tuple[int, ...]
    experts: int = 1

    def work(self, batch: int, bandwidth: float) -> Iteration:
        """A step on 16 GPUs at this speed of their NICs, half-precision gradients on V100s."""
        cluster, (job, _) = two_jobs_on_four_leafs(bandwidth)
        degrees = {"expert": self.experts if self.experts > 1 else None}
        return work_of_step(by_degrees(self.zoo, job.size, degrees, batch, "v100", precision="fp16"), job, cluster)


FIVE_MODELS = (
    Trained("VGG16", "vgg16", (8, 16, 32, 64)),
    Trained("ResNet50", "resnet50", (16, 32, 64, 128)),
    Trained("BERT", "bert-base", (4, 8, 16, 32)),
    Trained("DLRM", "dlrm", (512, 1024, 2048, 4096)),
    Trained("MoE", "deepseek-moe-16b", (1, 2, 4), experts=16),
)


@dataclass(frozen=True)
class ContentionRow:
    """Two jobs that train the same model beside each other: seconds of an iteration."""

    model: str
    batch: int
    bandwidth: float
    isolated_s: float
    ecmp_s: float

    @property
    def loss(self) -> float:
        """Part of the throughput that collisions take."""
        return 1 - self.isolated_s / self.ecmp_s


def two_jobs_on_four_leafs(bandwidth: float) -> tuple[Plant, tuple[Allocation, Allocation]]:
    """32 GPUs: four leafs of two 4-GPU servers, 8 spines; each job has one server on every leaf and 4 spines."""
    cluster = plant("leaf-spine:4x8x8", gpus_per_server=4, bandwidth=bandwidth)
    jobs = []
    for number in range(2):
        spines = tuple(range(4 * number, 4 * number + 4))
        jobs.append(
            Allocation(
                job=f"job{number}",
                gpus=tuple(8 * leaf + 4 * number + gpu for leaf in range(4) for gpu in range(4)),
                stage="clos",
                leafs=(0, 1, 2, 3),
                spines=spines,
                links=tuple((leaf, spine) for leaf in range(4) for spine in spines),
                spine_of_gpu=spines * 4,
                leaf_of_gpu=tuple(leaf for leaf in range(4) for _ in range(4)),
            )
        )
    return cluster, (jobs[0], jobs[1])


def beside_each_other(work: Iteration, bandwidth: float, routing: str, seed: int) -> float:
    """Mean seconds of an iteration of two jobs that do the same."""
    cluster, jobs = two_jobs_on_four_leafs(bandwidth)
    network = SharedNetwork(cluster, routing, seed)
    for number, job in enumerate(jobs):
        network.start(job.job, number, network.footprint(work, job))
    network.settle()
    return sum(network.pace(job.job).iteration_s for job in jobs) / len(jobs)


def contention_row(trained: Trained, batch: int, bandwidth: float, seeds: int = SEEDS) -> ContentionRow:
    """ECMP is the mean over hashes; isolation has no collisions to average."""
    work = trained.work(batch, bandwidth)
    hashed = [beside_each_other(work, bandwidth, "ecmp", seed) for seed in range(seeds)]
    isolated = beside_each_other(work, bandwidth, "source", 0)
    return ContentionRow(trained.name, batch, bandwidth, isolated, sum(hashed) / len(hashed))


def five_models_under_ecmp_and_isolation_32_gpus() -> list[ContentionRow]:
    """VGG16, ResNet50, BERT, DLRM and a mixture of experts, by batch at 25 Gbps and by link speed."""
    rows = [contention_row(one, batch, 25 * GBPS) for one in FIVE_MODELS for batch in one.batches]
    for one in FIVE_MODELS:
        rows += [contention_row(one, one.batches[1], gbps * GBPS) for gbps in (10, 50, 100, 200)]
    return rows


def mixture_of_600b_parameters_32_gpus(bandwidth: float = 100 * GBPS) -> dict[str, float]:
    """A mixture of experts of 600 billion parameters that spends 25.8 % in all-to-alls and 4.2 % in all-reduces.

    Two such jobs beside each other: the scaling factor of one (computing over iteration) on dedicated links, and under
    ECMP, mean over hashes.
    """
    cluster, (job, _) = two_jobs_on_four_leafs(bandwidth)
    quiet = SharedNetwork(cluster, "ideal", 0)
    parts = {"all-to-all": 0.258, "hierarchical-ring": 0.042}
    exchanges = tuple(
        JobExchange(name, part / quiet.footprint(Iteration(0.0, (JobExchange(name, 1.0),)), job).quiet_iteration_s)
        for name, part in parts.items()
    )
    work = Iteration(1 - sum(parts.values()), exchanges)
    hashed = [beside_each_other(work, bandwidth, "ecmp", seed) for seed in range(SEEDS)]
    return {
        "isolated": work.compute_s / beside_each_other(work, bandwidth, "source", 0),
        "ecmp": work.compute_s / (sum(hashed) / len(hashed)),
    }


# Whole traces.


@dataclass(frozen=True)
class Sweep:
    """A cluster and the trace that loads it."""

    cluster: str
    gpus_per_server: int
    sizes: Sizes
    jobs: int = 5000

    def study(self, load: float, jobs: int | None = None, seed: int = 0, names: Sequence[str] = ()) -> ClusterStudy:
        where = plant(self.cluster, self.gpus_per_server)
        durations = replace(DURATIONS["helios"], shortest_s=1000.0, longest_s=100_000.0)
        traced = Synthetic(jobs or self.jobs, where.gpus, load=load, sizes=self.sizes, durations=durations, seed=seed)
        usual = policies_named(["vclos", "vclos-all-divisors"], None, compare=True)
        policies = [POLICIES.named(name) for name in names] or usual
        title = f"{traced.jobs} jobs at load {load:g}"
        return told(where, jobs_of(traced.build(), where, seed=seed), policies, title, seed)


def told(where: Plant, jobs: Sequence[Job], policies: Sequence[Policy], title: str, seed: int) -> ClusterStudy:
    """A study that says how far it is."""
    with shown_progress("replaying") as progress:
        return answer(ClusterQuestion(where, jobs, policies, Conditions(seed=seed), title), progress)


SWEEPS = {
    "synthetic_trace_512_gpus": Sweep("leaf-spine:32x16x16", 4, SIZES["histogram-10000"]),
    "synthetic_trace_2048_gpus": Sweep("leaf-spine:64x32x32", 4, SIZES["histogram-10000"]),
    "synthetic_trace_8192_gpus": Sweep("leaf-spine:128x64x64", 4, SIZES["tpu-v4-slices"].up_to(512)),
    "synthetic_trace_32768_gpus": Sweep("leaf-spine:256x128x128", 8, SIZES["tpu-v4-slices"], jobs=10_000),
    "synthetic_trace_32768_gpus_in_pods": Sweep("fat-tree:64,32", 8, SIZES["tpu-v4-slices"], jobs=10_000),
}
"""Jobs last 1,000 to 100,000 s as on Helios, arrive as a Poisson process and train the published mix."""


def philly_as_muri_prepared_it_on_lingjun(
    trace: Path, leafs: Path, gpus_per_server: int = 1, load: float | None = None
) -> ClusterStudy:
    """5,755 jobs of Philly under Lingjun's access switches, each with as many ways up as its fullest one has GPUs.

    Lingjun is much larger than Philly: with 8-GPU servers it is nearly empty and every job fits under a leaf. With one
    GPU a server it has 847. A load lets jobs come as a Poisson process that asks for this part of the cluster.
    """
    where = read_plant(leafs, AssumedCabling(gpus_per_server=gpus_per_server, join_pods=True))
    traced = read_trace(trace).jobs
    if load is not None:
        traced = poisson(traced, mean_gap_for(traced, load, where.gpus))
    policies = policies_named(["vclos", "vclos-all-divisors", "laas"], None, compare=True)
    return told(where, jobs_of(traced, where), policies, trace.name, 0)


def show(found: ClusterStudy, seconds: float) -> None:
    print(f"{found.trace} on {found.plant.name}, {found.plant.gpus} GPUs; replayed in {seconds:.0f} s")
    print("| policy | JCT s | p99 JCT s | JRT s | JWT s | slow | contention | GPUs | of wanted | no spines | refused |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for policy, run in found.runs:
        times = (run.mean_jct_s, run.p99_jct_s, run.mean_jrt_s, run.mean_jwt_s)
        parts = (run.contention_ratio, run.gpu_utilisation, run.utilisation_of_wanted)
        cells = [policy.name, *(f"{seconds:,.0f}" for seconds in times), f"{run.mean_slowdown:.4f}"]
        cells += [*(f"{part:.1%}" for part in parts), str(run.network_fragmentation_events), str(len(run.refused))]
        print(f"| {' | '.join(cells)} |")


def show_contention(rows: Sequence[ContentionRow]) -> None:
    print("| model | batch | Gbps | isolated ms | ECMP ms | throughput lost |")
    print("|---|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row.model} | {row.batch} | {row.bandwidth / GBPS:g} | {1e3 * row.isolated_s:.1f} "
            f"| {1e3 * row.ecmp_s:.1f} | {row.loss:.1%} |"
        )


CONTENTION: tuple[Callable[[], list[ContentionRow]], ...] = (five_models_under_ecmp_and_isolation_32_gpus,)
TRACES = (philly_as_muri_prepared_it_on_lingjun,)


def main(arguments: list[str]) -> None:
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    name = arguments[0] if arguments else ""
    begin = time.perf_counter()
    for recipe in CONTENTION:
        if recipe.__name__ == name:
            show_contention(recipe())
            return
    if name == mixture_of_600b_parameters_32_gpus.__name__:
        print(
            ", ".join(
                f"scaling factor {where}: {value:.3f}" for where, value in mixture_of_600b_parameters_32_gpus().items()
            )
        )
        return
    if name in SWEEPS:
        jobs = int(options["--jobs"]) if "--jobs" in options else None
        chosen = [one for one in options.get("--policies", "").split(",") if one]
        found = SWEEPS[name].study(float(options.get("--load", "0.8")), jobs, names=chosen)
    elif name == TRACES[0].__name__:
        load = float(options["--load"]) if "--load" in options else None
        gpus = int(options.get("--gpus-per-server", "1"))
        found = TRACES[0](Path(options["--trace"]), Path(options["--leafs"]), gpus, load)
    else:
        mixture = mixture_of_600b_parameters_32_gpus.__name__
        print(
            "\n".join(
                (*(recipe.__name__ for recipe in CONTENTION), mixture, *SWEEPS, *(one.__name__ for one in TRACES))
            )
        )
        return
    show(found, time.perf_counter() - begin)
    if "--page" in options:
        Path(options["--page"]).write_text(cluster_page(of_one(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
