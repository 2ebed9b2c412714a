"""Options of `ropewalk pipeline` alone: how a model may be cut, what the cost model adds, what is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import PLACE
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.model_options import MODEL
from ropewalk.cli.step_outputs import FILES, PlanOutputs
from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError

HOW = "Partitioning"
RECOMPUTES = {"never": (False,), "always": (True,), "auto": (False, True)}

MICRO_BATCH = typer.Option(
    None,
    min=1,
    help="Smallest micro-batch size of the pipeline (one data-parallel rank, whose stages may have replicas); "
    "multiples "
    "are tried.  [default: 1, or the batch of the profile]",
    rich_help_panel=MODEL,
)
PROFILE_BATCH = typer.Option(
    None,
    min=1,
    help="Batch size of the profile, if its name (…-pbs-32.txt) does not contain it.",
    rich_help_panel=MODEL,
)
COLLECTIVE_BANDWIDTH = typer.Option(
    None, help="Bandwidth that collectives reach on a NIC, if different.", rich_help_panel=PLACE
)
START_UP = typer.Option("0us", help="Start-up latency of a message.", rich_help_panel=PLACE)
MEMORY = typer.Option(None, help="Memory per GPU, such as 16GB.  [default: that of the device]", rich_help_panel=PLACE)
SCHEDULE = typer.Option(
    "auto",
    help="Timetable: auto, or {schedules}.",
    rich_help_panel=HOW,
)
TENSOR = typer.Option("1", help="Tensor-parallel degrees of a replica, such as 1,2,4.", rich_help_panel=HOW)
RECOMPUTE = typer.Option(
    "auto",
    help="Recompute activations: never, always, or auto (where faster or needed).",
    rich_help_panel=HOW,
)
OVERLAP_SUMS = typer.Option(
    True,
    "--overlap/--no-overlap",
    help="Overlap the gradient all-reduce with the backward pass of the last micro-batch.",
    rich_help_panel=HOW,
)
CSV = typer.Option(
    None, metavar="FILE", help="Write the timetable for torch.distributed.pipelining.", rich_help_panel=FILES
)


@dataclass(frozen=True)
class PiecesOptions:
    """How many samples are priced and sent at a time."""

    micro_batch: int | None
    profile_batch: int | None


@dataclass(frozen=True)
class CostOptions:
    """What the cost model knows beyond the cluster."""

    collective_bandwidth: str | None
    start_up: str
    memory: str | None

    @property
    def collective_bytes_per_s(self) -> float | None:
        return None if self.collective_bandwidth is None else units.bandwidth(self.collective_bandwidth)

    @property
    def memory_bytes(self) -> float | None:
        return None if self.memory is None else float(units.size(self.memory))


@dataclass(frozen=True)
class CutOptions:
    """What the planner may use."""

    schedule: str
    tensor: str
    recompute: str
    overlap_sums: bool

    def check(self, gpus: int) -> None:
        if self.recompute not in RECOMPUTES:
            raise InputError(f"recompute is {self.recompute!r}: write one of {', '.join(RECOMPUTES)}")
        if max(self.degrees) > gpus:
            raise InputError(f"{max(self.degrees)} tensor-parallel GPUs do not fit on {gpus}: give a smaller --tensor")

    @property
    def degrees(self) -> tuple[int, ...]:
        """How many GPUs may share samples, 1 among them."""
        return tuple(sorted({1, *not_empty(tuple(_degree(part) for part in split(self.tensor)), "--tensor")}))

    @property
    def schedules(self) -> tuple[str, ...]:
        from ropewalk.pipeline.schedules import searched

        return searched() if self.schedule == "auto" else not_empty(split(self.schedule), "--schedule")


@dataclass(frozen=True)
class PipelineOutputs(PlanOutputs):
    """What is written."""

    csv: Path | None


def _degree(text: str) -> int:
    if not is_count(text) or int(text) < 1:
        raise InputError(f"--tensor {text!r} is not a list of degrees: write it like 1,2,4")
    return int(text)
