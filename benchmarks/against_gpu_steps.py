"""Predicted against measured training steps of one H200, row by row: `python benchmarks/against_gpu_steps.py`.

With a file that `benchmarks/gpu_sustained.py` wrote, against what is in it: steps after seconds at full power, stack by
stack, and their parts. `--predict DAY FILE` writes what is predicted for the steps of a day, to be done before they are
measured.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from gpu_days import DAYS, Case
from gpu_steps import PARTS, SUSTAINED_ON, MeasuredPart, MeasuredStep, h200_steps, h200_sustained_steps, measured_now
from ropewalk.device.cost import step_cost
from ropewalk.device.pricer import pricer
from ropewalk.workload.zoo import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="what benchmarks/gpu_sustained.py wrote")
    parser.add_argument("--predict", type=int, choices=DAYS, help="the day whose predictions are written to the file")
    chosen = parser.parse_args()
    if chosen.predict and not chosen.file:
        parser.error("--predict wants the file that predictions are written to")
    if chosen.predict:
        write_predictions(chosen.predict, chosen.file)
    elif chosen.file:
        steps, parts = measured_now(chosen.file)
        print_sustained(steps, max((len(step.name) for step in steps), default=0))
        print_parts(parts)
    else:
        print_shipped()


def write_predictions(day: int, path: Path) -> None:
    """What is predicted for every step of a day, with each of its optimisers."""
    rows = [predicted(day, case, optimiser) for case in DAYS[day] for optimiser in case.optimisers]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def predicted(day: int, case: Case, optimiser: str) -> dict[str, object]:
    """One step, under the power limit of an H200."""
    workload = build(case.model, case.batch, case.sequence, stack=case.stack)
    found = step_cost(workload, pricer(SUSTAINED_ON, case.precision).sustained(workload), optimiser)
    return {
        "day": day, "code": case.code, "stack": case.stack, "precision": case.precision, "model": case.model,
        "batch": case.batch, "sequence": case.sequence, "optimiser": optimiser,
        "forward_backward_s": f"{found.forward_backward_s:.5g}", "step_s": f"{found.step_s:.5g}",
        "parameters": found.parameters,
    }  # fmt: skip


def print_parts(parts: list[MeasuredPart]) -> None:
    """Kernels, scans and updates by themselves; prices are those of the full clock."""
    width = max((len(part.name) for part in parts), default=0)
    print(f"\n{'parts, at full clock':{width}}  {'measured, ms':>12}  error")
    for part in parts:
        print(f"{part.name:{width}}  {1e3 * part.measured_s:12.3f}  {part.predicted_s / part.measured_s - 1:+.1%}")


def print_shipped() -> None:
    """What was measured before."""
    steps = list(h200_steps())
    width = max(len(step.name) for step in steps)
    print(f"{'':{width}}  {'forward':>16}  {'forward+backward':>16}  {'step':>16}   limited by")
    for step in steps:
        cells = [f"{1e3 * step.measured_s[part]:8.2f} {step.error(part):+7.1%}" for part in PARTS]
        print(f"{step.name:{width}}  {'  '.join(cells)}   {'gpu' if step.is_limited_by_gpu else 'host or both'}")
    print(f"\n{'ms measured, error of the prediction':{width}}  n  median  90 %  worst")
    busy, unseen = [step for step in steps if step.is_limited_by_gpu], [step for step in steps if step.unseen]
    for name, chosen in (("all", steps), ("limited by the GPU", busy), ("predicted before they were measured", unseen)):
        print(f"{name:{width}}  {_summary(chosen)}")
    print_sustained(list(h200_sustained_steps()), width)


def print_sustained(steps: list[MeasuredStep], width: int) -> None:
    """Steps after ten seconds under the power limit, stack by stack."""
    print(f"\n{'after ten seconds, under 700 W':{width}}  {'forward+backward':>16}  {'step':>16}   limited by")
    for stack, precision in dict.fromkeys((step.predicted.stack, step.predicted.precision) for step in steps):
        chosen = [one for one in steps if (one.predicted.stack, one.predicted.precision) == (stack, precision)]
        for step in chosen:
            cells = [f"{1e3 * seconds:8.2f} {step.error(part):+7.1%}" for part, seconds in step.measured_s.items()]
            limit = "gpu" if step.is_limited_by_gpu else "host or both"
            print(f"{step.name:{width}}  {'  '.join(cells)}   {limit}, {step.predicted.optimiser}")
        print(f"{f'{stack}, {precision}: whole steps':{width}}  {_summary(chosen, ('step_s',))}")


def _summary(steps: list[MeasuredStep], parts: tuple[str, ...] = PARTS) -> str:
    errors = sorted(abs(step.error(part)) for step in steps for part in parts)
    return f"{len(errors)}  {statistics.median(errors):.1%}  {errors[int(0.9 * len(errors))]:.1%}  {errors[-1]:.1%}"


if __name__ == "__main__":
    main()
