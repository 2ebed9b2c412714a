"""What `ropewalk pipeline` shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console, print_whole
from ropewalk.words import in_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ropewalk.pipeline.answer import PipelineAnswer
    from ropewalk.pipeline.judge import Judged

WIDEST_PLAN = 40
"""Letters in a line of the names of plans that come out equal."""
MOST_STAGES = 16
"""Rows of the table of stages; of more, the first and the last are shown."""


def print_answer(found: PipelineAnswer, page: Path | None) -> None:
    say = console().print
    plan = found.best.plan
    again = ", with recomputation" if plan.recompute else ""
    say(
        f"{found.profile.name} on {found.machines.gpus} GPUs: {units.show_seconds(found.promised_s)} per step of "
        f"{plan.global_batch} samples, {plan.strategy} with {plan.schedule}",
        style="bold",
        soft_wrap=True,
    )
    if found.simulated:
        where = found.simulated[0].training.fabric.name
        say(
            f"simulated on {where}; the planner's clock, which models NICs but no network, estimates "
            f"{units.show_seconds(found.step_s)}",
            soft_wrap=True,
        )
    print_whole(_stage_table(found))
    many = "micro-batch" if plan.micro_batches == 1 else "micro-batches"
    say(f"{plan.micro_batches} {many} of {plan.micro_batch} samples{again}; {found.why()}", soft_wrap=True)
    print_whole(_table(found))
    for other in found.alternatives:
        if other.judged is None:
            say(f"{other.name}: not available: {other.reason}", soft_wrap=True)
    looked = "the search was exhaustive" if found.searched.exact else "; ".join(found.searched.restrictions)
    say(f"search: {found.searched.plans} plans timed; {looked}", soft_wrap=True)
    say(f"costs: {found.profile.source}", soft_wrap=True)
    if found.expected is not None:
        say(f"interval: {found.expected.said()}", soft_wrap=True)
    if page is None:
        say("add --page pipeline.html for the timetable, --csv schedule.csv for PyTorch", style="dim")


def _stage_table(found: PipelineAnswer) -> Table:
    from rich import box
    from rich.table import Table

    best = found.best
    memory = dict(zip(best.plan.devices, best.memory_bytes, strict=True))
    average = dict(zip(best.plan.devices, best.average_memory_bytes, strict=True))
    times = best.run.times
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("stage", "layers", "gpus", "replicas", "forward", "backward", "all-reduce", "memory", "average"):
        table.add_column(name, justify="left" if name in ("layers", "gpus") else "right", no_wrap=True)
    numbers = list(range(len(best.plan.pieces)))
    if len(numbers) > MOST_STAGES:
        numbers = numbers[: MOST_STAGES // 2] + numbers[-MOST_STAGES // 2 :]
    for number in numbers:
        stage = best.plan.pieces[number]
        table.add_row(
            str(number % len(best.plan.stages)),
            f"{stage.first}-{stage.last}" if len(stage.layers) > 1 else str(stage.first),
            in_ranges(stage.workers),
            f"{stage.replicas}" + (f" x {stage.tensor}" if stage.tensor > 1 else ""),
            units.show_seconds(float(times.forward[number])),
            units.show_seconds(float(times.backward[number] + times.weight[number])),
            units.show_seconds(float(times.all_reduce[number])),
            units.show_size(memory[stage.workers]),
            units.show_size(average[stage.workers]),
        )
    return table


def _table(found: PipelineAnswer) -> Table:
    """Plans that come out equal share a row, as on the page."""
    from rich import box
    from rich.table import Table

    from ropewalk.report.pipeline_charts import plan_rows

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("plan", max_width=WIDEST_PLAN)
    for name in ("simulated", "estimate", "vs. best", "stages", "schedule", "memory"):
        table.add_column(name, justify="left" if name in ("stages", "schedule") else "right", no_wrap=True)
    for row in plan_rows(found):
        judged = row.judged
        ratio = "" if judged is found.best else f"{found.to_best(judged):.3f} x"
        simulated = found.simulated_s(judged)
        table.add_row(
            ", ".join(row.names), "" if simulated is None else units.show_seconds(simulated),
            units.show_seconds(judged.step_s), ratio,
            strategy_in_words(judged), judged.plan.schedule, units.show_size(max(judged.memory_bytes)),
        )  # fmt: skip
    return table


def strategy_in_words(judged: Judged) -> str:
    """GPUs of every stage, in few letters where they are alike."""
    sizes = [len(gpus) for gpus in judged.plan.devices]
    return f"{len(sizes)} x {sizes[0]}" if len(sizes) > 2 and len(set(sizes)) == 1 else judged.plan.strategy
