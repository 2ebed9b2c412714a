"""`ropewalk pipeline`: where should the model be cut, on which GPUs, and in which order do they work?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.pipeline_subject import machines_of, open_subject
from ropewalk.cli.screen import console, print_json, print_whole, progress_bar, require_outputs, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.pipeline.answer import PipelineAnswer
    from ropewalk.pipeline.costs import Costs
    from ropewalk.pipeline.judge import Judged

MODEL, WHERE, HOW, FILES = "Model", "Where it runs", "How it may be cut", "Output"
RECOMPUTE = {"never": (False,), "always": (True,), "auto": (False, True)}
MOST_STAGES = 16
"""Rows of the table of stages; of more, the first and the last are shown."""
USUAL_MICRO_BATCHES = 4
"""Micro-batches for each GPU where no global batch is given."""


def pipeline_command(
    model: str = typer.Argument(
        help="A name such as gpt2-xl, file.py:Class, .onnx, a workload file, or a profile of DAPPLE or PipeDream "
        "(.txt)."
    ),
    batch: int | None = typer.Option(
        None, min=1, help="Samples of the whole step; 4 micro-batches for each GPU unless given.", rich_help_panel=MODEL
    ),
    micro_batch: int | None = typer.Option(
        None, min=1, help="Samples of the smallest micro-batch; multiples are tried. 1, or as a profile was measured.",
        rich_help_panel=MODEL,
    ),
    seq: int | None = typer.Option(
        None, "--seq", "--sequence", min=1, help="Tokens of a sample.", rich_help_panel=MODEL
    ),
    dtype: str = typer.Option("bf16", help="Precision: bf16, fp16, tf32 or fp32.", rich_help_panel=MODEL),
    optimiser: str = typer.Option("adamw", help="adamw, adamw_fused, momentum, sgd or none.", rich_help_panel=MODEL),
    profile_batch: int | None = typer.Option(
        None, min=1, help="Samples that a profile was measured with, where its name (…-pbs-32.txt) does not say.",
        rich_help_panel=MODEL,
    ),
    cluster: str = typer.Option(
        "2x8", help="Servers x GPUs of each, or GPUs of each server: 8,8,4.", rich_help_panel=WHERE
    ),
    device: str = typer.Option("h200", help="The GPU.", rich_help_panel=WHERE),
    bandwidth: str | None = typer.Option(
        None, help="Speed of a NIC, each way, such as 25Gbps; as in servers of that GPU unless given.",
        rich_help_panel=WHERE,
    ),
    collective_bandwidth: str | None = typer.Option(
        None, help="Speed that collectives reach on a NIC, where it differs.", rich_help_panel=WHERE
    ),
    nics: int | None = typer.Option(
        None, min=1, help="NICs of a server; one where --bandwidth is given.", rich_help_panel=WHERE
    ),
    nvlink: str | None = typer.Option(
        None, "--nvlink", "--nvlink-bandwidth", help="Speed of a GPU inside its server, such as 25GB/s.",
        rich_help_panel=WHERE,
    ),
    start_up: str = typer.Option("0us", help="Before the first byte of a message moves.", rich_help_panel=WHERE),
    memory: str | None = typer.Option(
        None, help="Of a GPU, such as 16GB; that of the device unless given, none for profiles.", rich_help_panel=WHERE
    ),
    schedule: str = typer.Option(
        "auto", help="auto, or names: 1f1b, 1f1b-deep, gpipe, interleaved, zb-h1, zb-h2, zb-v, zb-auto, "
        "dualpipev.", rich_help_panel=HOW,
    ),
    tensor: str = typer.Option(
        "1", help="How many GPUs may share the samples of a replica, such as 1,2,4.", rich_help_panel=HOW
    ),
    recompute: str = typer.Option(
        "auto", help="Compute activations again: never, always, or auto (where it is faster or needed).",
        rich_help_panel=HOW,
    ),
    overlap_sums: bool = typer.Option(
        True, "--overlap/--no-overlap", help="Add gradients up while the last micro-batch runs back.",
        rich_help_panel=HOW,
    ),
    csv: Path | None = typer.Option(
        None, metavar="FILE", help="Write the timetable for torch.distributed.pipelining.", rich_help_panel=FILES
    ),
    json: bool = typer.Option(
        False, "--json", help="Print one JSON object instead of the table.", rich_help_panel=FILES
    ),
    page: Path | None = typer.Option(
        None, metavar="FILE", help="Write a page with charts (HTML, works offline).", rich_help_panel=FILES
    ),
) -> None:  # fmt: skip
    """The stages, replicas, placement and timetable that make a step of a model shortest, against other planners.

    Example: `ropewalk pipeline gpt2-xl --cluster 2x8 --device a100 --bandwidth 100Gbps --batch 64 --page pipeline.html`
    """
    require_outputs(csv, page)
    if recompute not in RECOMPUTE:
        raise InputError(f"recompute is {recompute!r}: write one of {', '.join(RECOMPUTE)}")
    degrees = tuple(sorted({1, *not_empty(tuple(_degree(part) for part in split(tensor)), "--tensor")}))
    machines = machines_of(
        cluster,
        device=device,
        bandwidth=None if bandwidth is None else units.bandwidth(bandwidth),
        collective_bandwidth=None if collective_bandwidth is None else units.bandwidth(collective_bandwidth),
        nvlink=None if nvlink is None else units.bandwidth(nvlink),
        nics=nics,
        start_up_s=units.seconds(start_up),
    )
    if max(degrees) > machines.gpus:
        raise InputError(f"{max(degrees)} GPUs cannot share samples on {machines.gpus}: give a smaller --tensor")

    from ropewalk.pipeline.costs import Costs
    from ropewalk.pipeline.planner import plan
    from ropewalk.pipeline.schedules import AUTOMATIC
    from ropewalk.pipeline.terms import Terms

    with progress_bar() as bar:
        task = bar.add_task("pricing the model", total=None)
        subject = open_subject(
            model, device=device, dtype=dtype, optimiser=optimiser, sequence=seq, profile_batch=profile_batch
        )
        smallest = micro_batch or subject.profile.batch
        terms = Terms(
            batch or USUAL_MICRO_BATCHES * machines.gpus * smallest,
            smallest,
            memory_bytes=subject.memory_bytes if memory is None else float(units.size(memory)),
            state_multiple=subject.state_multiple,
            schedules=AUTOMATIC if schedule == "auto" else not_empty(split(schedule), "--schedule"),
            tensor=degrees,
            recompute=RECOMPUTE[recompute],
            overlap_sums=overlap_sums,
        )
        bar.update(task, description="searching cuts, replicas, places and timetables")
        found = plan(subject.model, machines, terms)
        # Whatever cannot be written is refused before anything is.
        timetable = None if csv is None else _timetable(found, Costs(subject.model, machines, terms), csv)
    if page is not None:
        from ropewalk.report.pipeline import pipeline_page

        write_page(page, pipeline_page(found))
    if csv is not None and timetable is not None:
        from ropewalk.files import write_whole

        text, whose = timetable
        write_whole(csv, text)
        typer.echo(f"timetable: {csv} ({whose})", err=True)
    if json:
        print_json(found.as_json())
    else:
        _print(found, page)


def _degree(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--tensor {text!r} is no number of GPUs: write degrees such as 1,2,4")
    return int(text)


def _timetable(found: PipelineAnswer, costs: Costs, path: Path) -> tuple[str, str]:
    """The plan's timetable; where PyTorch cannot run it, that of the fastest other plan which it can; and whose it
    is."""
    from ropewalk.export.torch_pipeline import compute_only
    from ropewalk.pipeline.even_replicas import best_with_even_replicas

    if _runs_on_torch(found.best):
        return compute_only(found.best.run.timetable), "of the plan"
    even = best_with_even_replicas(costs)
    others = {other.name: other.judged for other in found.alternatives if other.judged is not None}
    runnable = {name: judged for name, judged in others.items() if _runs_on_torch(judged)}
    if even is not None:
        runnable["even replicas"] = even
    if not runnable:
        raise InputError(
            f"cannot write {path}: PyTorch runs pipelines of two stages or more with as many replicas each, and no "
            "such plan was found: give other GPUs or another --schedule"
        )
    name = min(runnable, key=lambda name: runnable[name].step_s)
    chosen = runnable[name]
    slower = chosen.step_s / found.step_s
    return compute_only(chosen.run.timetable), (
        f"of {name}, {_strategy(chosen)} with {chosen.plan.schedule}, {slower:.3f} x the plan's step: PyTorch needs "
        "two stages or more, as many replicas for each"
    )


def _runs_on_torch(judged: Judged) -> bool:
    plan, table = judged.plan, judged.run.timetable
    return len(plan.devices) > 1 and len(set(plan.replicas)) == 1 and table.copies == 1


def _print(found: PipelineAnswer, page: Path | None) -> None:
    say = console().print
    plan = found.best.plan
    again = ", activations computed again" if plan.recompute else ""
    say(
        f"{found.profile.name} on {found.machines.gpus} GPUs: {units.show_seconds(found.step_s)} a step of "
        f"{plan.global_batch} samples, {plan.strategy} with {plan.schedule}",
        style="bold",
        soft_wrap=True,
    )
    print_whole(_stage_table(found))
    say(f"{plan.micro_batches} micro-batches of {plan.micro_batch} samples{again}; {found.why()}", soft_wrap=True)
    print_whole(_table(found))
    for other in found.alternatives:
        if other.judged is None:
            say(f"{other.name}: none: {other.reason}", soft_wrap=True)
    looked = "every plan was looked at" if found.searched.exact else "; ".join(found.searched.restrictions)
    say(f"search: {found.searched.plans} plans timed; {looked}", soft_wrap=True)
    say(f"costs: {found.profile.source}", soft_wrap=True)
    if page is None:
        say("add --page pipeline.html for the timetable, --csv schedule.csv for PyTorch", style="dim")


def _stage_table(found: PipelineAnswer) -> Table:
    from rich import box
    from rich.table import Table

    best = found.best
    memory = dict(zip(best.plan.devices, best.memory_bytes, strict=True))
    times = best.run.times
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("stage", "layers", "gpus", "replicas", "forward", "backward", "sums", "memory"):
        table.add_column(name, justify="left" if name in ("layers", "gpus") else "right", no_wrap=True)
    numbers = list(range(len(best.plan.stages)))
    if len(numbers) > MOST_STAGES:
        numbers = numbers[: MOST_STAGES // 2] + numbers[-MOST_STAGES // 2 :]
    for number in numbers:
        stage = best.plan.stages[number]
        table.add_row(
            str(number),
            f"{stage.first}-{stage.last}" if stage.states > 1 else str(stage.first),
            gpus_in_words(stage.gpus),
            f"{stage.replicas}" + (f" x {stage.tensor}" if stage.tensor > 1 else ""),
            units.show_seconds(float(times.forward[number])),
            units.show_seconds(float(times.backward[number] + times.weight[number])),
            units.show_seconds(float(times.all_reduce[number])),
            units.show_size(memory[stage.gpus]),
        )
    return table


def gpus_in_words(gpus: tuple[int, ...]) -> str:
    """GPUs as ranges.

    >>> gpus_in_words((0, 1, 2, 3, 8))
    '0-3,8'
    """
    runs: list[list[int]] = []
    for gpu in sorted(gpus):
        if runs and runs[-1][1] == gpu - 1:
            runs[-1][1] = gpu
        else:
            runs.append([gpu, gpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _table(found: PipelineAnswer) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("plan", "step", "to best", "stages", "schedule", "memory"):
        table.add_column(name, justify="left" if name in ("plan", "stages", "schedule") else "right", no_wrap=True)
    rows = [("found", found.best), *((other.name, other.judged) for other in found.alternatives if other.judged)]
    for name, judged in sorted(rows, key=lambda row: (row[1].step_s, row[0] != "found")):
        ratio = "" if judged is found.best else f"{judged.step_s / found.step_s:.3f} x"
        table.add_row(
            name, units.show_seconds(judged.step_s), ratio, _strategy(judged), judged.plan.schedule,
            units.show_size(max(judged.memory_bytes)),
        )  # fmt: skip
    return table


def _strategy(judged: Judged) -> str:
    """GPUs of every stage, in few letters where they are alike."""
    sizes = [len(gpus) for gpus in judged.plan.devices]
    return f"{len(sizes)} x {sizes[0]}" if len(sizes) > 2 and len(set(sizes)) == 1 else judged.plan.strategy
