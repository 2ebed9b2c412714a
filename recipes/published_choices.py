"""Published choices of degrees beside ours: their time as predicted and as published, and their rank in our search.

`python recipes/published_choices.py` prints a row for every run of `tests/data/published_runs_modern.csv` that can be
said here, and counts the others by reason (`--only ID …` for some of them). What a row does not say is said here, once
for a whole source; nothing is chosen by row. Rows join by themselves once their precision, GPU or model is known.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.device import DEVICES, PRECISIONS
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.units import show_seconds

DATA = Path(__file__).parent.parent / "tests" / "data" / "published_runs_modern.csv"
VENDOR = ("Megatron-Bridge", "NeMo AutoModel")
"""Software whose rows are choices: what its authors found fastest."""
MODELS = {
    "DeepSeekV3": "deepseek-v3",
    "DeepSeek V3 671B": "deepseek-v3",
    "GPT OSS 120B": "gpt-oss-120b",
    "GPT-OSS 20B": "gpt-oss-20b",
    "LLAMA3.1_405B": "llama3-405b",
    "LLAMA3_70B": "llama3-70b",
    "LLAMA3_8B": "llama3-8b",
    "Llama3 70B": "llama3-70b",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
}
"""Published names without remarks, and ours."""
GPUS = {"H100-80GB": "h100", "H100": "h100", "B200": "b200", "B300": "b300", "GB200": "gb200", "GB300": "gb300"}
PRECISION = {"bf16": "bf16", "fp8": "fp8", "fp8-cs": "fp8", "fp8-mx": "mxfp8", "mxfp8": "mxfp8", "nvfp4": "nvfp4"}
PIECES = (2, 3, 4, 5, 6, 8, 10, 12)
"""Pieces per stage that are searched where the published choice has several."""
OFF_BY = 1.05
"""Beyond this ratio the table says why."""


@dataclass(frozen=True)
class PublishedChoice:
    """A published run with its degrees."""

    id: str
    software: str
    model: str
    task: str
    """Pre-training, fine-tuning, LoRA."""
    accelerator: str
    gpus: int
    sequence: int
    batch: int
    micro_batch: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    interleave: int
    sharded: int
    """Ranks that weights are sharded over (FSDP), 0 where only the optimiser's state is."""
    precision: str
    seconds: float
    """Of a step."""

    @property
    def said(self) -> str:
        degrees = {"tp": self.tensor, "pp": self.pipeline, "cp": self.context, "ep": self.expert, "vp": self.interleave}
        split = " ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1) or "dp"
        sharded = ", FSDP" if self.sharded > 1 else ""
        return f"{self.model}, {split}{sharded}, batch {self.batch} by {self.micro_batch} x {self.sequence}"

    @property
    def zero(self) -> int:
        """Megatron shares the optimiser's state out, FSDP2 weights too; in a pipeline they stay whole for the step."""
        return 3 if self.sharded > 1 and self.pipeline == 1 else 1

    def question(self) -> PlannerQuestion:
        """The search in whose ranking it has its place: run by Megatron-Core with Transformer Engine.

        Where stages hold several pieces, these need not have equal numbers of blocks: 61 or 126 hardly divide.
        """
        model = MODELS[self.model]
        stack = f"{model}{',' if ':' in model else ':'}stack=megatron"
        pieces = tuple(sorted({*PIECES, self.interleave})) if self.interleave > 1 else ()
        return PlannerQuestion(
            stack, self.cluster(), self.batch, self.sequence, PRECISION[self.precision], Space(interleave=pieces)
        )

    def cluster(self) -> Cluster:
        """Servers of eight GPUs with a NIC each, or 64 GPUs of an NVL72 in one NVLink domain, as these jobs use it."""
        together = 64 if self.accelerator.startswith("GB") else 8
        return read_cluster(given=Given(self.gpus, GPUS[self.accelerator], min(together, self.gpus)))

    def why_not(self) -> str:
        """Why it cannot be said here; empty where it can."""
        if "LoRA" in self.task or "SFT" in self.task or "Fine" in self.task:
            return "fine-tuning: weights that stay as they are cannot be said"
        if not (self.batch and self.micro_batch):
            return "batch or micro-batch not stated"
        if PRECISION.get(self.precision) not in PRECISIONS:
            return f"{self.precision}, which is not priced"
        if GPUS.get(self.accelerator) not in DEVICES:
            return f"{self.accelerator} is no device here"
        return "" if self.model in MODELS else f"{self.model} is no model here"


@cache
def published_choices() -> tuple[PublishedChoice, ...]:
    """The rows of the vendor's summaries, in the order of the file."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(_choice(row) for row in csv.DictReader(file) if row["software"].startswith(VENDOR))


def _choice(row: dict[str, str]) -> PublishedChoice:
    model, _, task = row["model"].partition(" [")
    number = {name: int(row[name]) if row[name].isdecimal() else 1 for name in ("tp", "pp", "cp", "ep", "vp")}
    gpus, batch, sequence = (int(row[name] or 0) for name in ("n_accel", "global_batch", "seq_len"))
    value = float(row["value"])
    return PublishedChoice(
        row["id"], row["software"], model.split(" (")[0], task.rstrip("]"), row["accelerator"], gpus, sequence, batch,
        int(row["micro_batch"] or 0), *(number[name] for name in ("tp", "pp", "cp", "ep", "vp")),
        int(row["zero_fsdp"] or 0), row["precision"].lower(),
        value if row["unit"] == "s" else batch * sequence / (value * gpus),
    )  # fmt: skip


@dataclass(frozen=True)
class Ranked:
    """A published choice in our ranking."""

    choice: PublishedChoice
    answer: PlannerAnswer
    theirs: str
    """The strategy as it was simulated."""
    predicted_s: float
    rank: int
    """Among all that fit, by the bound of each; 1 is the fastest."""

    @property
    def error(self) -> float:
        return self.predicted_s / self.choice.seconds - 1

    @property
    def ratio(self) -> float:
        """Their predicted step over that of our best."""
        return self.predicted_s / self.answer.best.seconds


def ranked(choice: PublishedChoice) -> Ranked | str:
    """Search, and look the published choice up; why not, where it does not fit or is not in the space.

    Recomputation is not published: the fastest that fits is taken.
    """
    found = answer(choice.question())
    priced, mine = found.priced, _matching(choice, found)
    if not len(mine):
        return "outside of the space"
    fit = mine[priced.fits[mine]]
    if not len(fit):
        least = float(priced.memory_bytes[mine].min())
        return f"does not fit: {least / 1e9:.0f} of {found.capacity_bytes / 1e9:.0f} GB with everything recomputed"
    every = np.flatnonzero(priced.fits)
    seconds = priced.replay(every)
    at = int(fit[np.argmin(seconds[np.searchsorted(every, fit)])])
    strategy = priced.strategy(at, found.training.workload)
    rank = 1 + int((seconds < seconds[np.searchsorted(every, at)] * (1 - 1e-9)).sum())
    return Ranked(choice, found, strategy.said(), Simulator(found.question).seconds(strategy), rank)


def _matching(choice: PublishedChoice, found: PlannerAnswer) -> NDArray[np.int64]:
    """Candidates with the published degrees."""
    candidates = found.priced.candidates
    schedule = candidates.space.schedules.index("interleaved" if choice.interleave > 1 else "1f1b")
    wanted = {
        "tensor": choice.tensor, "pipeline": choice.pipeline, "context": choice.context, "expert": choice.expert,
        "sequence": int(choice.tensor > 1), "micro_batch": choice.micro_batch, "zero": choice.zero,
        "schedule": schedule if choice.pipeline > 1 else 0, "interleave": choice.interleave,
    }  # fmt: skip
    return np.flatnonzero(np.all([candidates.column(name) == value for name, value in wanted.items()], axis=0))


HEADS = ("row", "what", "GPUs", "published", "predicted", "error", "rank", "of", "to best", "theirs, ours")


def table(choices: tuple[PublishedChoice, ...]) -> Iterator[str]:
    """A row for every choice that can be said, then the others by reason."""
    yield "| " + " | ".join(HEADS) + " |"
    missing: Counter[str] = Counter()
    for choice in choices:
        one = choice.why_not() or ranked(choice)
        if isinstance(one, str):
            missing[one] += 1
            continue
        said = one.theirs if one.ratio <= OFF_BY else f"{one.theirs}; ours: {one.answer.best.said()}"
        yield "| " + " | ".join([
            choice.id, choice.said, f"{choice.gpus} {choice.accelerator}", show_seconds(choice.seconds),
            show_seconds(one.predicted_s), f"{one.error:+.0%}", f"{one.rank:,}", f"{one.answer.counts.fit:,}",
            f"{one.ratio:.2f}", said,
        ]) + " |"  # fmt: skip
    for reason, many in missing.most_common():
        yield f"{many} rows: {reason}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="ids of rows; all unless given")
    only = parser.parse_args().only
    for line in table(tuple(one for one in published_choices() if only is None or one.id in only)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
