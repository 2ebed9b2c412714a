"""`ropewalk cluster report`: a job of a live cluster says how fast it trains; and what its plan promises."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ropewalk import units
from ropewalk.cli.live_options import LiveOptions, asked, job_named
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, console, print_json
from ropewalk.errors import InputError

JOB = typer.Argument(metavar="JOB", help="A running job, by id or by name.")
STEP = typer.Option(..., min=1, help="Steps of training that are done.")
STEPS = typer.Option(1, min=1, help="Number of latest steps that --took covers.")
TOOK = typer.Option(..., help="How long those steps took together, such as 16.8s or 420ms.")


@with_options
def report_command(
    job: str = JOB, step: int = STEP, steps: int = STEPS, took: str = TOOK, json: bool = JSON, *, live: LiveOptions
) -> None:
    """Report the speed of a running job, to compare it with the step time that its plan promised.

    Example: `ropewalk cluster report train --step 1240 --steps 40 --took 16.8s`
    """
    whom = live.open()
    body = {"step": step, "steps": steps, "seconds": units.seconds(took)}
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/progress", body).document
    if json:
        print_json(found)
        return
    console().print(speed_said(found["speed"]), soft_wrap=True)


def promised_step_s(plan: Path, gpus: int) -> float:
    """The step time that a plan predicts for a job of so many GPUs."""
    from ropewalk.plans import read_plan
    from ropewalk.strategy.strategy import SERVER

    found = read_plan(plan)
    if found.prediction is None:
        raise InputError(f"{plan} promises no step time: write it again with `ropewalk simulate {plan} --plan FILE`")
    needs = found.cluster.gpus if found.strategy.grain == SERVER else found.strategy.ranks
    if needs != gpus:
        raise InputError(f"{plan} is for {needs} GPUs, and the job asks for {gpus}: give --gpus {needs}")
    return found.prediction.step_time_s


def speed_said(speed: Mapping[str, Any]) -> str:
    """Promised and measured in one line.

    >>> speed_said({"recent_step_s": 0.42, "promised_step_s": 0.4, "slowdown": 1.05, "step": 1240})
    'step 1240: 420 ms per step, 5.0 % longer than promised (400 ms)'
    >>> speed_said({"recent_step_s": None, "promised_step_s": 0.4, "slowdown": None, "step": None})
    'promised: 400 ms per step; it has not reported its speed from where it runs now'
    """
    promised = None if speed["promised_step_s"] is None else units.show_seconds(speed["promised_step_s"])
    if speed["recent_step_s"] is None:
        silent = "it has not reported its speed from where it runs now"
        return silent if promised is None else f"promised: {promised} per step; {silent}"
    said = f"step {speed['step']}: {units.show_seconds(speed['recent_step_s'])} per step"
    if promised is None:
        return said
    percent = 100 * (speed["slowdown"] - 1)
    how = f"{abs(percent):.1f} % {'longer' if percent > 0 else 'shorter'} than"
    return f"{said}, {'as' if abs(percent) < 0.05 else how} promised ({promised})"
