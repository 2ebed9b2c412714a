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

    def error(self, part: str) -> float:
        """Predicted against measured, minus 1."""
        return float(getattr(self.predicted, part)) / self.measured_s[part] - 1

    @property
    def is_limited_by_gpu(self) -> bool:
        """Has the GPU clearly more to do than the host that launches its work?"""
        both = self.predicted.forward + self.predicted.backward
        return both.gpu_s > 2 * both.host_s


def h200_steps() -> Iterator[MeasuredStep]:
    """Every step of the table beside its prediction."""
    with MEASURED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sequence = int(row["sequence"]) or None
            workload = build(row["model"], int(row["batch"]), sequence)
            prices = pricer("h200", row["precision"])
            size = f"batch {row['batch']}" + (f" x {sequence}" if sequence else "")
            yield MeasuredStep(
                f"{row['model']}, {size}, {row['precision']}",
                row["set"] == "unseen",
                int(row["parameters"]),
                {part: float(row[part]) for part in PARTS},
                step_cost(workload, prices),
                sort_of(workload, prices.device, row["precision"]),
            )
