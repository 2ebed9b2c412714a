"""Write `src/ropewalk/training/data/checked_runs.csv`: the error of every prediction that was checked, by sort of run.

`python recipes/checked_runs.py` predicts again all published runs of which the set-up is known and to which nothing was
fitted, and the steps of an H200 that were predicted before they were measured. It takes some minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from gpu_steps import h200_steps, h200_sustained_steps
from modern_runs import modern_runs
from published_runs import QUESTIONS, is_calibration, predict, published_runs, why_not_comparable
from ropewalk.device.device import device
from ropewalk.device.held import held_to
from ropewalk.device.pricer import pricer
from ropewalk.training import TrainingQuestion
from ropewalk.training.checked import BETWEEN, COLUMNS, CheckedRun, sort_of
from ropewalk.training.traits import traits_of
from ropewalk.workload.source import open_workload

WRITTEN = Path(__file__).parent.parent / "src" / "ropewalk" / "training" / "data" / "checked_runs.csv"
OLD, SHORT = "llm-foundry", 2048
"""Of these runs of 2023 those of longer sequences spend much of their time in FlashAttention in Triton, which is not
priced and which nobody runs any more."""


def rows() -> Iterator[CheckedRun]:
    """Every run beside its prediction."""
    for run in published_runs():
        if run.bytes or (run.set == OLD and run.sequence > SHORT) or is_calibration(run) or why_not_comparable(run):
            continue
        found = predict(run)
        assert found is not None
        yield _checked(run.id, QUESTIONS[run.set](run), found.error)
    for modern in modern_runs():
        if not modern.why_not():
            yield _checked(modern.id, modern.question(), modern.predicted_s() / modern.seconds - 1)
    for number, step in enumerate(h200_steps(held_to("h200"))):  # as commands predict them; the limit costs at most 4 %
        if step.unseen:
            yield CheckedRun(f"h200-{number}", step.sort, 1, step.error("step_s"), step.traits)
    for number, step in enumerate(h200_sustained_steps()):
        if step.unseen:
            yield CheckedRun(f"h200-sustained-{number}", step.sort, 1, step.error("step_s"), step.traits)


def _checked(name: str, question: TrainingQuestion, error: float) -> CheckedRun:
    strategy = question.strategy()
    workload = open_workload(str(question.model), strategy.micro_batch, question.sequence)
    prices = pricer(question.device, question.precision).sustained(workload)
    sort = sort_of(workload, device(question.device), question.precision)
    return CheckedRun(name, sort, question.gpu_count, error, traits_of(workload, prices, strategy))


def main() -> None:
    with WRITTEN.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for run in rows():
            sort, traits = run.sort, run.traits
            out.writerow([
                run.id, sort.architecture, sort.model, sort.bits, sort.stack, sort.clock, run.gpus, f"{run.error:.4f}",
                traits.sequence, BETWEEN.join(traits.parts),
            ])  # fmt: skip
            print(run.id, sort.said(), run.gpus, f"{run.error:+.1%}", *traits.parts, flush=True)


if __name__ == "__main__":
    main()
