"""Against ASTRA-sim, side by side: both run the same Chakra trace of a training step on the same switch.

ASTRA-sim (github.com/astra-sim/astra-sim, MIT) has to be built: give the path of its binary
`AstraSim_Analytical_Congestion_Aware` with --astra. Its congestion-aware network has one dimension, so all GPUs are on
one switch, 50 GiB/s and 500 ns a hop; no NVLink. Chunks are stored and forwarded there, so every message is split into
16, which makes that small. The trace is written by us; both read it from disk, and reading is counted on both sides.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measure import cpu, machine, options, short, summary, table
from ropewalk.export.chakra import read_chakra, write_chakra
from ropewalk.fabric import IdealSwitch
from ropewalk.sim.step import statistics
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.network import expand_on, run_on

BUILD = "build github.com/astra-sim/astra-sim (build/astra_analytical/build.sh), then --astra PATH of the binary"
GIB = 2**30
BANDWIDTH_GIB, HOP_NS, SPLITS = 50.0, 500.0, 16
FINISHED = re.compile(r"sys\[(\d+)\] finished, (\d+) cycles")
RINGS = ("all-reduce", "all-gather", "reduce-scatter")


@dataclass(frozen=True)
class Case:
    gpus: int
    detail: str
    micro_batches: int

    def question(self) -> TrainingQuestion:
        stages = min(16, self.gpus // 8)
        data = self.gpus // (8 * stages)
        return TrainingQuestion(
            "megatron-175b", gpus=self.gpus, tensor=8, pipeline=stages, data=data, detail=self.detail,
            batch=self.micro_batches * data, micro_batch=1, memory_check=False,
        )  # fmt: skip


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--astra", type=Path, default=None, help="AstraSim_Analytical_Congestion_Aware")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run of ASTRA-sim is ended")
    chosen = parser.parse_args()
    print(f"against ASTRA-sim: the same trace in both. {machine()}")
    if chosen.astra is None:
        print(f"ASTRA-sim is missing, only our side is measured. To compare: {BUILD}")
    cases = [Case(16, "stage", 4)] if chosen.quick else CASES
    answer(TrainingQuestion("gpt2", gpus=8, network=NetworkUse(symmetry=False)))  # loads the kernels
    rows = [row for case in cases for row in _rows(case, chosen.astra, chosen.limit)]
    table(
        "GPT-3 175B, the same Chakra trace on the same switch",
        ["what", "operations", "who", "simulated s", "wall s", "CPU s", "reading CPU s"],
        rows,
    )


CASES = [Case(64, "stage", 32), Case(64, "layer", 8), Case(128, "stage", 32), Case(1024, "stage", 32)]


def _rows(case: Case, astra: Path | None, limit: float) -> list[list[str]]:
    name = f"{case.gpus:,} GPUs, {case.detail} detail, {case.micro_batches} micro-batches"
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "step"
        step = answer(case.question()).run.step
        write_chakra(step, prefix)
        found = [_ours(prefix, case.gpus, mode) for mode in ("fluid", "rounds")]
        if astra is not None:
            found.append(["ASTRA-sim", *_astra(astra, prefix, case.gpus, limit), "-"])
            ours, theirs = found[0], found[-1]
            summary(f"{name}: ours {ours[1]} s in {ours[3]} CPU s, ASTRA-sim {theirs[1]} s in {theirs[3]} CPU s")
    return [[name, f"{step.operations:,}", *one] for one in found]


def _ours(prefix: Path, gpus: int, mode: str) -> list[str]:
    """Who, simulated seconds, wall seconds, CPU seconds, those of them for reading the trace."""
    fabric = IdealSwitch(gpus, bandwidth=BANDWIDTH_GIB * GIB, latency=HOP_NS * 1e-9).build()
    use = NetworkUse(collectives=mode, transport=Transport(), symmetry=False)
    wall = time.perf_counter()
    step, read_s = cpu(lambda: read_chakra(prefix))
    run, run_s = cpu(lambda: run_on(step, expand_on(step, fabric, use), fabric, use))
    found, told_s = cpu(lambda: statistics(run))
    wall = time.perf_counter() - wall
    who = f"ours, {mode} ({run.trace.graph.tasks:,} tasks)"
    return [who, f"{found.step_time_s:.4f}", short(wall), short(read_s + run_s + told_s), short(read_s)]


def _astra(binary: Path, prefix: Path, gpus: int, limit: float) -> tuple[str, str, str]:
    """Simulated seconds, wall seconds, CPU seconds of ASTRA-sim on the trace."""
    folder = prefix.parent
    network, system, memory = folder / "network.yml", folder / "system.cfg", folder / "memory.cfg"
    network.write_text(
        f"topology: [ Switch ]\nnpus_count: [ {gpus} ]\nbandwidth: [ {BANDWIDTH_GIB} ]\nlatency: [ {HOP_NS} ]\n"
    )
    system.write_text(
        json.dumps(
            {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": SPLITS,
             "preferred-dataset-splits": SPLITS, "collective-optimization": "localBWAware", "local-mem-bw": 1600,
             "all-to-all-implementation": ["direct"], **{f"{name}-implementation": ["ring"] for name in RINGS}}
        )
    )  # fmt: skip
    memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    command = [
        str(binary.resolve()), f"--workload-configuration={prefix}", f"--comm-group-configuration={prefix}.json",
        f"--system-configuration={system}", f"--network-configuration={network}",
        f"--remote-memory-configuration={memory}", f"--logging-folder={folder / 'log'}",
    ]  # fmt: skip
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        # It may abort while it cleans up, after everything has been printed: what counts is that all ranks finished.
        output = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=limit).stdout
    except subprocess.TimeoutExpired:
        return f"not in {limit:.0f} s", f">{limit:.0f}", "-"
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ends = {int(rank): int(cycles) for rank, cycles in FINISHED.findall(output)}
    if len(ends) != gpus:
        raise SystemExit(f"{len(ends)} of {gpus} ranks finished in ASTRA-sim:\n{output[-2000:]}")
    return f"{max(ends.values()) * 1e-9:.4f}", short(wall), short(spent)


if __name__ == "__main__":
    main()
