"""Whole training steps measured on an H200, and what `ropewalk cost` says about them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropewalk.device.cost import StepCost, step_cost
from ropewalk.device.pricer import pricer
from ropewalk.strategy import Strategy
from ropewalk.training.checked import Sort, sort_of
from ropewalk.training.traits import Traits, traits_of
from ropewalk.workload.kernel import rebuilt
from ropewalk.workload.scan import Scan
from ropewalk.workload.zoo import build

MEASURED = Path(__file__).parent.parent / "tests" / "data" / "h200_steps.csv"
"""Made by `python benchmarks/gpu_steps.py steps.csv [--unseen]` on one H200; PyTorch 2.11, torchvision 0.26,
transformers 5.17. The operators of the zoo and the code between calls were checked against the first set; the unseen
set was predicted before it was measured."""
SUSTAINED = MEASURED.with_name("h200_sustained_steps.csv")
"""Steps after ten seconds. `transformers` is that library's own code; `lean` is a Llama written as fused stacks have
it: one product for queries, keys and values, compiled norms, gates and loss, FP8 scaled tensor by tensor. Its
gradients stay in bf16, where Megatron-Core adds them to float32."""
HELD_APART = MEASURED.with_name("h200_parts.csv")
"""Updates, products in FP8 and attention by themselves, of the run that measured the unseen steps."""
BLIND = ("unseen", "later", "third")
"""Sets that were predicted before they were measured, a day each."""
SUSTAINED_ON = "h200@700W"
PARTS = ("forward_s", "forward_backward_s", "step_s")
UNPRICED = "forward_rowwise"
"""A form of products that is measured and has no kernel of its own."""


@dataclass(frozen=True)
class MeasuredStep:
    """One model at one size, with what the GPU took and what was predicted."""

    name: str
    unseen: bool
    parameters: int
    measured_s: dict[str, float]
    predicted: StepCost
    sort: Sort
    traits: Traits
    code: str = "transformers"
    day: str = ""
    """The set that it belongs to: `first`, and those that were predicted before they were measured."""

    def error(self, part: str) -> float:
        """Predicted against measured, minus 1."""
        return float(getattr(self.predicted, part)) / self.measured_s[part] - 1

    @property
    def is_limited_by_gpu(self) -> bool:
        """Has the GPU clearly more to do than the host that launches its work?"""
        both = self.predicted.forward + self.predicted.backward
        return both.gpu_s > 2 * both.host_s


@dataclass(frozen=True)
class MeasuredPart:
    """One kernel, scan or update by itself, with what was predicted at full clock."""

    name: str
    measured_s: float
    predicted_s: float


def h200_steps(device: str = "h200") -> Iterator[MeasuredStep]:
    """Every step of the first tenths of a second beside its prediction: at full clock, which the GPU still has then."""
    return _beside(_table(MEASURED), device)


def h200_sustained_steps() -> Iterator[MeasuredStep]:
    """Every step after ten seconds beside its prediction, under the power limit of 700 W."""
    return _beside(_table(SUSTAINED), SUSTAINED_ON)


def measured_now(path: Path) -> tuple[list[MeasuredStep], list[MeasuredPart]]:
    """Steps and parts of a file that `benchmarks/gpu_sustained.py` wrote, each beside its prediction.

    Steps under FSDP2 on one rank (`sharded`) are left out: what its buffers cost is priced where ranks share weights.
    """
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    steps = [row for row in rows if row["part"] == "step" and not row["sharded"]]
    parts = [_part(row) for row in rows if row["part"] != "step" and row.get("form") != UNPRICED]
    return list(_beside(steps, SUSTAINED_ON)), parts


def h200_parts() -> list[MeasuredPart]:
    """Every part that was measured beside the unseen steps, beside its price."""
    return [_part(_typed(row)) for row in _table(HELD_APART) if row["form"] != UNPRICED]


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    """A row of the table as the file of the measurement has it."""
    numbers = {key: int(row[key]) for key in ("count", "parameters") if row[key]}
    dims = {"dims": [int(size) for size in row["dims"].split()]}
    return {**row, **numbers, **dims, "seconds": float(row["seconds"]), "dropped": float(row["dropped"] or 0)}


def _part(row: Mapping[str, Any]) -> MeasuredPart:
    prices = pricer("h200", row["precision"])
    if row["part"] == "update":
        work = prices.update_work(row["parameters"], row["count"], row["optimiser"])
        name = f"{row['optimiser']}, {row['tensors']}, {row['precision']}"
        return MeasuredPart(name, row["seconds"], work.seconds)
    kind, form, dims = row["kind"], row["form"], tuple(row["dims"])
    dropped = f" dropout {row['dropped']:g}" if row.get("dropped") else ""
    launched = (
        getattr(Scan(*dims), form)() if kind == "scan" else (rebuilt(kind, form + "_dropped" * bool(dropped), dims),)
    )
    name = f"{kind} {form} {' '.join(map(str, dims))}{dropped}, {row['precision']}"
    return MeasuredPart(name, row["seconds"], sum(prices.alone(kernel) for kernel in launched))


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _beside(rows: Iterable[Mapping[str, Any]], device: str) -> Iterator[MeasuredStep]:
    for row in rows:
        sequence = int(row["sequence"]) or None
        workload = build(row["model"], int(row["batch"]), sequence, stack=row.get("stack", "eager"))
        prices = pricer(device, row["precision"]).sustained(workload)
        size = f"batch {row['batch']}" + (f" x {sequence}" if sequence else "")
        yield MeasuredStep(
            f"{row['model']}, {size}, {row['precision']}",
            row.get("set") in BLIND,
            int(row["parameters"]),
            {part: float(row[part]) for part in PARTS if part in row},
            step_cost(workload, prices, row.get("optimiser", "adamw")),
            sort_of(workload, prices.device, row["precision"]),
            traits_of(workload, prices, Strategy()),
            row.get("code", "transformers"),
            row.get("set", ""),
        )
