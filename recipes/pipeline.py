"""Studies of pipelines: cuts, replicas, places and timetables against other planners; one function a study.

`python recipes/pipeline.py` lists them, `python recipes/pipeline.py NAME [FOLDER]` runs one and prints its rows as CSV.
Studies of measured profiles read all `*-pbs-N.txt` files of a folder (DAPPLE's and PipeDream's format).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from ropewalk.device.pricer import pricer
from ropewalk.pipeline.answer import PipelineAnswer
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.profile import profile_of
from ropewalk.pipeline.state_prices import WorkloadPrices
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.timetable_study import communication_study, memory_study
from ropewalk.workload.imports import from_profile
from ropewalk.workload.source import open_workload

Row = dict[str, object]

ONE_EACH = tuple(range(1, 17))
CLUSTERS = {
    "A": Machines(16, (8, 16)),
    "B": Machines(16, ONE_EACH),
    "C": Machines(16, ONE_EACH, p2p_between=1.25e9, collective_between=1.25e9),
}
"""DAPPLE's clusters of 16 V100s: two servers of eight with NVLink and 25 Gbps, 16 servers with 25 and with 10 Gbps."""
BATCHES = {"vgg-19": 2048, "gnmt-16": 1024, "bert-48": 64, "xlnet-36": 128, "amoeba-36": 128}
"""Global batches of DAPPLE's table, by the beginning of the profile's name; 64 times the measured batch for others."""
MEMORY_BYTES = 16e9


def profiles_on_the_three_clusters_of_dapple(folder: Path) -> Iterator[Row]:
    """Measured profiles on two servers of eight GPUs and on 16 servers of one, 25 and 10 Gbps, against all planners."""
    for path in sorted(folder.glob("*-pbs-*.txt")):
        profile = profile_of(from_profile(path))
        batch = next((size for name, size in BATCHES.items() if path.stem.startswith(name)), 64 * profile.batch)
        for name, machines in CLUSTERS.items():
            terms = Terms(batch, profile.batch, memory_bytes=MEMORY_BYTES, recompute=(False, True))
            yield {"cluster": name, **_row(plan(profile, machines, terms))}


def gpt2_xl_on_2_to_32_a100s_40gb_100gbps() -> Iterator[Row]:
    """A model of 1.6 billion parameters on more and more GPUs, servers of eight."""
    model = WorkloadPrices(open_workload("gpt2-xl", 1, 1024), pricer("a100", "bf16"))
    for gpus in (2, 4, 8, 16, 32):
        ends = tuple(range(8, gpus + 1, 8)) or (gpus,)
        machines = Machines(gpus, ends, 12.5e9, 12.5e9, 300e9, switched=True)
        terms = Terms(64, 1, memory_bytes=40e9, state_multiple=8.0, recompute=(False, True))
        yield {"cluster": f"{len(ends)} servers", **_row(plan(model, machines, terms))}


def timetables_of_2_4_and_8_stages_over_communication() -> Iterator[Row]:
    """GPipe, 1F1B (P_A), deep 1F1B (P_B) and zero bubble as hand-overs grow from nothing to more than a stage."""
    for devices in (2, 4, 8):
        for row in communication_study(devices, 4 * devices):
            yield {"devices": devices, **asdict(row)}


def timetables_of_4_stages_memory_over_micro_batches() -> Iterator[Row]:
    """What the fullest device keeps: everything with GPipe, as much as the pipeline is deep with the others."""
    for row in memory_study(4, range(4, 65, 4)):
        yield {"devices": 4, **asdict(row)}


def _row(answer: PipelineAnswer) -> Row:
    best = answer.best
    return {
        "model": answer.profile.name,
        "gpus": answer.machines.gpus,
        "strategy": best.plan.strategy,
        "schedule": best.plan.schedule,
        "micro_batch": best.plan.micro_batch,
        "recompute": best.plan.recompute,
        "plan_s": answer.step_s,
        "bubble": best.run.bubble,
        "memory_gb": max(best.memory_bytes) / 1e9,
        **{
            f"{name}_s": answer.alternative(name).step_s
            for name in ("data-parallel", "straight", "gpipe", "pipedream", "dapple-released")
        },
    }


WITHOUT_FILES: tuple[Callable[[], Iterator[Row]], ...] = (
    gpt2_xl_on_2_to_32_a100s_40gb_100gbps,
    timetables_of_2_4_and_8_stages_over_communication,
    timetables_of_4_stages_memory_over_micro_batches,
)
OF_A_FOLDER: tuple[Callable[[Path], Iterator[Row]], ...] = (profiles_on_the_three_clusters_of_dapple,)


def main(arguments: list[str]) -> None:
    alone = {recipe.__name__: recipe for recipe in WITHOUT_FILES}
    of_folder = {recipe.__name__: recipe for recipe in OF_A_FOLDER}
    name, *rest = arguments or [""]
    if name in alone and not rest:
        rows = alone[name]()
    elif name in of_folder and len(rest) == 1:
        rows = of_folder[name](Path(rest[0]))
    else:
        for listed in (*WITHOUT_FILES, *OF_A_FOLDER):
            folder = " FOLDER" if listed.__name__ in of_folder else ""
            print(f"{listed.__name__}{folder}\n    {(listed.__doc__ or '').splitlines()[0]}")
        sys.exit(2 if arguments else 0)
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
