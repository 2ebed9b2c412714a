"""How long it takes to simulate a training step, from 8 to 4,096 GPUs, and how many strategies a second can be asked.

The step: GPT-3 175B, tensor parallel within servers of 8, 16 pipeline stages from 128 GPUs on, data parallel beyond,
1F1B with 192 micro-batches of one sample in every pipeline (1,536 samples on 1,024 GPUs), h200 on a leaf-spine fabric.
Every measurement has a process of its own, so that its peak memory is its own; loading the kernels is not counted.
Seconds go from the question to the whole answer: prices, stages, memory, operations, tasks, routes, flows, statistics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chart import Panel, Series, write_chart
from measure import cpu, in_a_fresh_process, machine, options, peak_mib, short, summary, table
from ropewalk.device.pricer import pricer
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import KeptPrices, cut, memory, shares_of
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.workload.source import open_workload

CHART = Path(__file__).parents[1] / "docs" / "images" / "training-step.svg"

MODEL, GPUS_OF_A_SERVER, MOST_STAGES, MICRO_BATCHES = "megatron-175b", 8, 16, 192
SMALLER = "megatron:layers=40,hidden=5120,heads=40"
"""13 billion parameters, of which many strategies are asked."""
SAMPLES, STRATEGY_GPUS = 512, 64


@dataclass(frozen=True)
class Run:
    """One step to be simulated."""

    gpus: int
    detail: str = "stage"
    symmetry: bool = False
    fabric: str = "leaf-spine"
    routing: str = "default"

    def question(self) -> TrainingQuestion:
        stages = max(1, min(MOST_STAGES, self.gpus // GPUS_OF_A_SERVER))
        data = self.gpus // (GPUS_OF_A_SERVER * stages)
        return TrainingQuestion(
            MODEL,
            read_cluster(given=Given(self.gpus, network=self.fabric)),
            tensor=GPUS_OF_A_SERVER,
            pipeline=stages,
            data=data,
            batch=MICRO_BATCHES * data,
            micro_batch=1,
            detail=self.detail,
            network=NetworkUse(self.routing, symmetry=self.symmetry),
            memory_check=False,  # few GPUs do not hold this model; here only the work of simulating it counts
        )

    def measure(self) -> dict[str, Any]:
        """The answer of a fresh process."""
        return in_a_fresh_process(__file__, "--one", json.dumps(vars(self)))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--one", help="measure one run, given as JSON, in this process")
    parser.add_argument(
        "--chart", type=Path, default=None, help=f"where to draw (default {CHART.name}; quick: nowhere)"
    )
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_measured(Run(**json.loads(chosen.one)))))
        return
    print(f"training step: seconds and peak memory, each run in its own process. {machine()}")
    Run(8).measure()  # if the kernels have to be compiled, that happens now and is in nobody's figures
    grown = _growth(64 if chosen.quick else 4096)
    _kinds(16 if chosen.quick else 1024)
    _strategies(9 if chosen.quick else None)
    path = chosen.chart or (None if chosen.quick else CHART)
    if path is not None:
        write_chart(_panels(grown), path)
        print(f"\ndrawn: {path}")


HEAD = ["operations", "tasks", "simulated", "wall s", "CPU s", "peak MiB", "step s", "exposed s"]


def _growth(most: int) -> dict[str, list[dict[str, Any]]]:
    sizes = [gpus for gpus in (8, 64, 256, 1024, 4096) if gpus <= most]
    found = {
        "every task": [Run(gpus).measure() for gpus in sizes],
        "by symmetry": [Run(gpus, symmetry=True).measure() for gpus in sizes],
    }
    rows = [[f"{one['gpus']:,} GPUs, {how}", *_cells(one)] for how, runs in found.items() for one in runs]
    table("A step of GPT-3 175B in stage detail, 192 micro-batches", ["what", *HEAD], rows)
    for one in found["every task"]:
        if one["gpus"] >= min(1024, most):
            summary(
                f"GPT-3 175B on {one['gpus']:,} GPUs: {one['tasks']:.3g} tasks in {short(one['wall_s'])} s "
                f"({short(one['cpu_s'])} CPU s), {one['peak_mib'] / 1024:.2f} GiB at most"
            )
    return found


def _kinds(gpus: int) -> None:
    """The same step on other networks and layer by layer: how much contention adds, and what it costs to simulate."""
    leafs = max(2, gpus // 32)
    half = f"leaf-spine:{leafs}x{gpus // leafs // 2}x{gpus // leafs}"
    whole = Run(gpus)
    runs = {
        "non-blocking": whole,
        "non-blocking, hashed routes": replace(whole, routing="ecmp"),
        "oversubscribed 2:1": replace(whole, fabric=half),
        "oversubscribed 2:1, hashed routes": replace(whole, fabric=half, routing="ecmp"),
        "non-blocking, layer by layer": replace(whole, detail="layer"),
        "non-blocking, layer by layer, by symmetry": replace(whole, detail="layer", symmetry=True),
    }
    found = {name: run.measure() for name, run in runs.items()}
    quiet = found["non-blocking"]["exposed_s"]
    rows = [[name, *_cells(one), f"{100 * (one['exposed_s'] / quiet - 1):+.1f} %"] for name, one in found.items()]
    table(f"{gpus:,} GPUs on other networks and in more detail", ["what", *HEAD, "more exposed"], rows)


def _cells(one: dict[str, Any]) -> list[str]:
    return [
        f"{one['operations']:,}", f"{one['tasks']:,}", f"{one['simulated']:,}", short(one["wall_s"]),
        short(one["cpu_s"]), f"{one['peak_mib']:.0f}", f"{one['step_s']:.3f}", f"{one['exposed_s']:.3f}",
    ]  # fmt: skip


def _measured(run: Run) -> dict[str, Any]:
    """One run in this process, once the kernels are loaded."""
    warm = TrainingQuestion("gpt2", gpus=16, tensor=2, network=NetworkUse(symmetry=run.symmetry))
    answer(warm)
    began = time.perf_counter()
    found, cpu_s = cpu(lambda: answer(run.question()))
    return {
        "gpus": run.gpus, "wall_s": time.perf_counter() - began, "cpu_s": cpu_s, "peak_mib": peak_mib(),
        "operations": found.run.step.operations, "tasks": found.run.trace.graph.tasks,
        "simulated": found.run.trace.classes, "step_s": found.statistics.step_time_s,
        "exposed_s": found.statistics.exposed_communication_s,
    }  # fmt: skip


def strategies(gpus: int = STRATEGY_GPUS, samples: int = SAMPLES) -> Iterator[dict[str, int]]:
    """Ways to split a step over GPUs: tensor ranks within a server, micro-batches of 1, 2 and 4 samples."""
    for tensor in (1, 2, 4, 8):
        for stages in (1, 2, 4, 8, 16):
            data, rest = divmod(gpus, tensor * stages)
            for micro_batch in (1, 2, 4):
                if data and not rest and samples % (data * micro_batch) == 0:
                    yield {"tensor": tensor, "pipeline": stages, "data": data, "micro_batch": micro_batch}


def question_of(strategy: dict[str, int], device: str = "a100") -> TrainingQuestion:
    """The smaller model under one of these strategies."""
    return TrainingQuestion(
        SMALLER, read_cluster(given=Given(STRATEGY_GPUS, device)), batch=SAMPLES, micro_batch=strategy["micro_batch"],
        tensor=strategy["tensor"], pipeline=strategy["pipeline"], data=strategy["data"], detail="stage",
        memory_check=False,
        network=NetworkUse(symmetry=False),
    )  # fmt: skip


def _strategies(most: int | None) -> None:
    """Strategies of one model a second: simulated to the end, and priced only."""
    asked = list(strategies())[:most]
    answer(question_of(asked[0]))  # loads the kernels
    priced_s = cpu(lambda: [_price(strategy) for strategy in asked])[1]  # also fills what both keep
    answers, simulated_s = cpu(lambda: [answer(question_of(strategy)) for strategy in asked])
    priced_s = min(priced_s, cpu(lambda: [_price(strategy) for strategy in asked])[1])
    tasks = [one.run.trace.graph.tasks for one in answers]
    rows = [
        ["simulated, network and all", f"{len(asked)}", short(simulated_s), f"{len(asked) / simulated_s:.1f}"],
        ["priced: shares, stages, memory", f"{len(asked)}", short(priced_s), f"{len(asked) / priced_s:.0f}"],
    ]
    title = f"Strategies of 13B on 64 GPUs, 512 samples ({min(tasks):,} to {max(tasks):,} tasks a step)"
    table(title, ["what", "strategies", "CPU s", "a second"], rows)
    summary(
        f"13B on 64 GPUs: {len(asked) / simulated_s:.1f} strategies a second simulated on the network, "
        f"{len(asked) / priced_s:.0f} priced only"
    )


def _price(asked: dict[str, int]) -> float:
    """Seconds of the slowest stage and bytes of the fullest, without communication: what a formula would start from."""
    strategy = question_of(asked).strategy()
    workload = open_workload(SMALLER, strategy.micro_batch)
    shares = shares_of(workload, strategy)
    pieces = cut(workload, strategy, shares, LISTED)
    return memory(strategy, shares, pieces, LISTED.numbers).most


LISTED = KeptPrices(pricer("a100", "bf16"))
"""Prices of one device, each asked for once."""


def _panels(found: dict[str, list[dict[str, Any]]]) -> list[Panel]:
    def series(value: str) -> list[Series]:
        return [Series(how, [(one["gpus"], one[value]) for one in runs]) for how, runs in found.items()]

    return [
        Panel("Time of a simulated step", "GPUs", "CPU seconds", series("cpu_s")),
        Panel("Memory of a simulated step", "GPUs", "peak MiB", series("peak_mib")),
    ]


if __name__ == "__main__":
    main()
