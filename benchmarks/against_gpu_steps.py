"""Predicted against measured training steps of one H200, row by row: `python benchmarks/against_gpu_steps.py`."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from gpu_steps import PARTS, MeasuredStep, h200_steps, h200_sustained_steps


def main() -> None:
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
            print(f"{step.name:{width}}  {'  '.join(cells)}   {'gpu' if step.is_limited_by_gpu else 'host or both'}")
        print(f"{f'{stack}, {precision}: whole steps':{width}}  {_summary(chosen, ('step_s',))}")


def _summary(steps: list[MeasuredStep], parts: tuple[str, ...] = PARTS) -> str:
    errors = sorted(abs(step.error(part)) for step in steps for part in parts)
    return f"{len(errors)}  {statistics.median(errors):.1%}  {errors[int(0.9 * len(errors))]:.1%}  {errors[-1]:.1%}"


if __name__ == "__main__":
    main()
