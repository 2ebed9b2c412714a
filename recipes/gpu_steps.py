"""Whole training steps measured on an H200, and what `ropewalk cost` says about them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ropewalk.device.cost import StepCost, step_cost
from ropewalk.device.pricer import pricer
from ropewalk.training.checked import Sort, sort_of
from ropewalk.workload.zoo import build

MEASURED = Path(__file__).parent.parent / "tests" / "data" / "h200_steps.csv"
"""Made by `python benchmarks/gpu_steps.py steps.csv [--unseen]` on one H200; PyTorch 2.11, torchvision 0.26,
transformers 5.17. The operators of the zoo and the code between calls were checked against the first set; the unseen
set was predicted before it was measured."""
SUSTAINED = MEASURED.with_name("h200_sustained_steps.csv")
"""Steps after ten seconds. `transformers` is that library's own code; `lean` is a Llama written as fused stacks have
it: one product for queries, keys and values, compiled norms, gates and loss, FP8 scaled tensor by tensor. Its
gradients stay in bf16, where Megatron-Core adds them to float32."""
PARTS = ("forward_s", "forward_backward_s", "step_s")


@dataclass(frozen=True)
class MeasuredStep:
    """One model at one size, with what the GPU took and what was predicted."""

    name: str
    unseen: bool
    parameters: int
    measured_s: dict[str, float]
    predicted: StepCost
    sort: Sort
    code: str = "transformers"

    def error(self, part: str) -> float:
        """Predicted against measured, minus 1."""
        return float(getattr(self.predicted, part)) / self.measured_s[part] - 1

    @property
    def is_limited_by_gpu(self) -> bool:
        """Has the GPU clearly more to do than the host that launches its work?"""
        both = self.predicted.forward + self.predicted.backward
        return both.gpu_s > 2 * both.host_s


def h200_steps(device: str = "h200") -> Iterator[MeasuredStep]:
    """Every step of the first tenths of a second beside its prediction: at full clock, which the GPU still has then."""
    return _beside(MEASURED, device)


def h200_sustained_steps() -> Iterator[MeasuredStep]:
    """Every step after ten seconds beside its prediction, under the power limit of 700 W."""
    return _beside(SUSTAINED, "h200@700W")


def _beside(table: Path, device: str) -> Iterator[MeasuredStep]:
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sequence = int(row["sequence"]) or None
            workload = build(row["model"], int(row["batch"]), sequence, stack=row.get("stack", "eager"))
            prices = pricer(device, row["precision"]).sustained(workload)
            size = f"batch {row['batch']}" + (f" x {sequence}" if sequence else "")
            yield MeasuredStep(
                f"{row['model']}, {size}, {row['precision']}",
                row.get("set") == "unseen",
                int(row["parameters"]),
                {part: float(row[part]) for part in PARTS if part in row},
                step_cost(workload, prices, row.get("optimiser", "adamw")),
                sort_of(workload, prices.device, row["precision"]),
                row.get("code", "transformers"),
            )
