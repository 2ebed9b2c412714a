"""`plan` beside the strands alone: never slower than `pipeline`, DAPPLE's released planner, `overlap` or collectives.

Every case is asked twice: for what frameworks can run, against what they can run of the strand's answers, and with
`--allow unrunnable` against all of them. All steps are simulated on the same network. Profiles of DAPPLE and PipeDream
are those of the tests (V100); DAPPLE's 84 recorded cases have its NIC of collectives and its links inside servers.

A case takes about half a minute and is printed with its number as it ends; `--cases 57:` goes on with the 57th,
`--cases 0::2` takes every other one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from measure import machine, options, summary, table
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer as ordered
from ropewalk.pipeline.on_cluster import contenders
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.question import PipelineQuestion
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.study import answer
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.strategy import Strategy
from ropewalk.training import NetworkUse, TrainingQuestion
from ropewalk.training import answer as simulated

TESTS = Path(__file__).parents[1] / "tests" / "data"
DAPPLE_BATCHES = {
    "vgg-19": 2048, "bert-24": 96, "bert-48": 64, "xlnet-24": 128, "xlnet-36": 128, "amoeba-18": 128, "amoeba-36": 128,
    "gnmt-32-simplified": 1024,
}  # fmt: skip
DAPPLE_CLUSTERS = {"A": ("2x8", 3.125e9), "B": ("16x1", 3.125e9), "C": ("16x1", 1.25e9)}
ORDERED = (("vgg16", 1024, None), ("resnet50", 1024, None), ("bert-large", 128, 512), ("gpt2", 128, 1024))
NETWORKS = ("torus:4x4", "leaf-spine:4x1x4", "fat-tree", "leaf-spine:2x2x8")
EQUAL = 1 + 1e-9


@dataclass(frozen=True)
class Asked:
    """What both are asked, and the seconds of the strand's best: of what can be run, and of all."""

    question: PlannerQuestion
    run_s: float
    any_s: float


@dataclass(frozen=True)
class Case:
    """One comparison by name; the strand is asked when its turn comes."""

    strand: str
    name: str
    asked: Callable[[], Asked]


def pipelines(folder: Path, quick: bool) -> Iterator[Case]:
    """Profiles on DAPPLE's three clusters, then its recorded cases."""
    for model, batch in list(DAPPLE_BATCHES.items())[: 1 if quick else None]:
        for name, (shape, bandwidth) in DAPPLE_CLUSTERS.items():
            cluster = read_cluster(shape, Given(device="v100", nics=1, nic_bandwidth=bandwidth))
            yield Case("pipeline", f"{model} on {name}", partial(_pipeline, folder, model, cluster, batch))
    for case in json.loads((TESTS / "dapple_plans.json").read_text())[: 2 if quick else None]:
        sizes = [end - start for start, end in pairwise([0, *case["separators"]])]
        _, collective, inside = case["bandwidths"]
        given = Given(device="v100", nics=1, nic_bandwidth=collective, nvlink_bandwidth=inside)
        cluster = read_cluster(f"{len(sizes)}x{sizes[0]}", given)
        name = f"{case['model']} {case['global_batch']} on {len(sizes)}x{sizes[0]} at {collective / 1e9:g} GB/s"
        yield Case("DAPPLE", name, partial(_pipeline, folder, case["model"], cluster, case["global_batch"]))


def _pipeline(folder: Path, model: str, cluster: Cluster, batch: int) -> Asked:
    """The best plan of every schedule and those of other planners, DAPPLE's released one among them."""
    path = str(_profile(folder, model))
    asked = PipelineQuestion(path, cluster, batch=batch)
    found = plan(asked.subject.model, asked.machines, asked.terms)
    question = PlannerQuestion(path, cluster, batch, precision="fp32")
    simulator, known = Simulator(question), {}
    for strategy in contenders(found, asked.subject.trained, cluster.gpus):
        known[strategy] = simulator.seconds(strategy)
    return Asked(question, _least(known, only_run=True), _least(known))


def _least(known: dict[Strategy, float], *, only_run: bool = False) -> float:
    kept = [seconds for one, seconds in known.items() if not only_run or None in runnable(one).values()]
    return min(kept, default=float("inf"))


def _profile(folder: Path, model: str) -> Path:
    """A profile of the tests as the file that commands read."""
    found = json.loads((TESTS / "pipeline_profiles.json").read_text())[model]
    path = folder / f"{model}-pbs-{found['batch']}.txt"
    columns = (found[key] for key in ("forward_ms", "backward_ms", "activation_bytes", "parameter_bytes"))
    rows = [
        f"node{at} -- layer{at} -- forward_compute_time={ahead!r}, backward_compute_time={back!r}, "
        f"activation_size={out!r}, parameter_size={weights!r}"
        for at, (ahead, back, out, weights) in enumerate(zip(*columns, strict=True))
    ]
    rows += [f"  node{source} -- node{at}" for at, reads in enumerate(found["reads"]) for source in reads]
    path.write_text("\n".join(rows) + "\n")
    return path


def orders(quick: bool) -> Iterator[Case]:
    """Data parallelism on four servers of eight A100, a NIC of 25 Gbps each."""
    cluster = read_cluster("4x8", Given(device="a100", nics=1, nic_bandwidth=3.125e9))
    for model, batch, sequence in ORDERED[: 1 if quick else None]:
        yield Case("overlap", model, partial(_order, model, cluster, batch, sequence))


def _order(model: str, cluster: Cluster, batch: int, sequence: int | None) -> Asked:
    asked = OverlapQuestion(model, cluster, batch=batch, sequence=sequence)
    known = {
        replace(asked.training.strategy(), order=way.order): way.time_s
        for way in ordered(asked).methods
        if way.order is not None
    }
    return Asked(PlannerQuestion(model, cluster, batch, sequence), _least(known, only_run=True), _least(known))


def collectives(quick: bool) -> Iterator[Case]:
    """Data parallelism of 16 servers with the fastest collectives on networks of all kinds."""
    for network in NETWORKS[: 1 if quick else None]:
        yield Case("collective", network, partial(_collective, network))


def _collective(network: str) -> Asked:
    cluster = read_cluster("16x1", Given(device="a100", network=network, nic_bandwidth=3.125e9))
    asked = TrainingQuestion(
        "gpt2", cluster, batch=64, sequence=512, data=16, micro_batch=4, network=NetworkUse(algorithm="auto")
    )
    seconds = simulated(asked).statistics.step_time_s
    return Asked(PlannerQuestion("gpt2", cluster, 64, 512), seconds, seconds)


def part(text: str) -> slice:
    """`57:` or `0::2` as Python reads them."""
    return slice(*(int(one) if one else None for one in text.split(":")))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--cases", type=part, default=slice(None), metavar="FROM:TO:STEP", help="only these, from 0")
    given = parser.parse_args()
    print(f"plan beside the strands alone. {machine()}")
    rows: list[list[str]] = []
    slower: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        every = chain(collectives(given.quick), orders(given.quick), pipelines(Path(folder), given.quick))
        for number, case in list(enumerate(every))[given.cases]:
            asked = case.asked()
            counts = slower.setdefault(case.strand, [0, 0, 0])
            usual, free = (answer(replace(asked.question, allow=allow)).best.seconds for allow in ((), ("unrunnable",)))
            counts[0] += 1
            counts[1] += usual > asked.run_s * EQUAL
            counts[2] += free > asked.any_s * EQUAL
            times = (asked.run_s, usual, asked.any_s, free)
            rows.append([str(number), case.strand, case.name, *(f"{seconds * 1e3:.5g}" for seconds in times)])
            print("  ".join(rows[-1]), flush=True)
    table("steps in ms", ["", "strand", "case", "theirs, run", "plan", "theirs, any", "plan, any"], rows)
    for strand, (many, run, any_one) in slower.items():
        summary(f"plan is slower than {strand} in {run} of {many} cases that can be run, in {any_one} of all {many}")


if __name__ == "__main__":
    main()
