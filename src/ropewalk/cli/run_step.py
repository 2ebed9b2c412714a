"""A training step, from the command line: what is written to files and what is shown on the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.screen import console, print_json, shown_progress, write_page
from ropewalk.cli.step_outputs import StepOutputs
from ropewalk.progress import counting

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.hardware import Cluster
    from ropewalk.plans import Plan, Prediction
    from ropewalk.sim import Trace
    from ropewalk.sim.step import StepRun, StepStatistics
    from ropewalk.task.expand import Expansion
    from ropewalk.training import NetworkUse, TrainingAnswer, TrainingQuestion
    from ropewalk.training.answer import StepAnswer

ALL_RANKS = 512
"""GPUs up to which `simulate` writes every rank out, whatever is asked for."""
SAME = 1e-9
"""Part of a step by which two simulations of it may differ: not all of them add up in the same order."""


def write_table(trace: Trace, path: Path, expansion: Expansion | None = None) -> None:
    from ropewalk.export import tables

    write = {".csv": tables.write_csv, ".parquet": tables.write_parquet}[path.suffix.lower()]
    write(trace, path, expansion)
    typer.echo(f"tasks: {path}", err=True)


def run_model(question: TrainingQuestion, outputs: StepOutputs, before: Plan | None = None) -> None:
    """Answer the question, write the files, print the table; beside it what the plan `before` promised."""
    from ropewalk.plans import write_plan
    from ropewalk.strategy.by_stack import gradients_in_words
    from ropewalk.training import TrainingAnswer, answer
    from ropewalk.training.planned import changes_since, plan_of

    with shown_progress("pricing the model") as progress:
        found = _of_one_of_each(question, outputs) or answer(question, progress)
    promised = None if before is None else before.prediction
    if outputs.plan is not None:
        made = plan_of(found) if before is None else plan_of(found, before.made_by, before.study)
        write_plan(made, outputs.plan)
        typer.echo(f"plan: {outputs.plan}", err=True)
    if isinstance(found, TrainingAnswer):
        whole = found
        _write(whole.run, whole.expansion, outputs, whole.rank_names(), lambda: _model_page(whole))
    if outputs.json:
        print_json(found.as_json() | ({} if promised is None else {"promised_step_time_s": promised.step_time_s}))
        return
    say = console().print
    say(_model_title(found), style="bold", soft_wrap=True)
    for sentence in [] if before is None else changes_since(before, found):
        say(f"note: {sentence}", style="yellow", soft_wrap=True)
    if promised is not None:
        say(_beside(promised, found.statistics.step_time_s), soft_wrap=True)
    _print_reason(found.statistics)
    say(_times_table(found.statistics))
    if found.strategy.pipeline > 1:
        say(_stage_table(found))
    capacity = units.show_size(found.capacity_bytes)
    say(f"memory: {units.show_size(found.memory.most)} of {capacity} on the fullest GPU", soft_wrap=True)
    if sent := gradients_in_words(found.strategy):
        say(f"gradients: {sent}", soft_wrap=True)
    say(f"costs: {found.cost_source}", soft_wrap=True)
    say(f"interval: {found.expected.said()}", soft_wrap=True)
    say(f"fabric: {found.fabric.name} ({found.router}, {found.question.network.algorithm})", soft_wrap=True)
    if found.question.network.designed is not None:
        from ropewalk.fabric.wiring import rings_in_words

        for line in rings_in_words(found.question.network.designed.wiring):
            say(f"cables: {line}", soft_wrap=True)
    for note in found.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)


def _of_one_of_each(question: TrainingQuestion, outputs: StepOutputs) -> StepAnswer | None:
    """The answer for very many GPUs from one rank of each class, where no file asks for all of them: little memory."""
    from ropewalk.collectives.choice import collective_choice
    from ropewalk.training.quick import QuickSteps
    from ropewalk.training.quick_answer import quick_answer

    network = question.network
    plain = not (network.level.knows_packets or question.jitter or question.stragglers)
    if outputs.every_rank or question.gpu_count <= ALL_RANKS or not plain:
        return None
    if collective_choice(network.named()).is_open or not QuickSteps.covers(question.strategy()):
        return None
    return quick_answer(QuickSteps(question), question)


def _beside(promised: Prediction, seconds: float) -> str:
    """What the plan promised, and by how much this run differs."""
    change = seconds / promised.step_time_s - 1 if promised.step_time_s else 0.0
    more = f"{units.show_percent(abs(change), 2)} {'more' if change > 0 else 'less'}"
    differs = "the same as here" if abs(change) < SAME else f"this run takes {more}"
    return f"the plan predicted {units.show_seconds(promised.step_time_s)} at level {promised.level.level}: {differs}"


def run_chakra(
    prefix: str,
    cluster_of: Callable[[int], Cluster],
    use_of: Callable[[Cluster], NetworkUse],
    outputs: StepOutputs,
) -> None:
    """Run the step of a Chakra trace on a cluster with as many GPUs as it has ranks."""
    from ropewalk.export.chakra import read_chakra
    from ropewalk.hardware.complete import gpu_of
    from ropewalk.sim.step import statistics
    from ropewalk.training.answer import run_as_json
    from ropewalk.training.collectives import as_json, collectives_of, notes_of, settled
    from ropewalk.training.network import expand_on, run_on

    with shown_progress() as show:
        show(0, None, "reading the trace")
        step = read_chakra(prefix)
        cluster = cluster_of(step.ranks)
        fabric, use = cluster.fabric(), use_of(cluster).settled(gpu_of(cluster.device), cluster).run_by(None)
        router = use.router_on(fabric)
        show(0, None, "writing its tasks")
        use, chosen = settled(step, fabric, use, lambda now: show(0, None, now))
        expansion = expand_on(step, fabric, use)
        run = run_on(step, expansion, fabric, use, counting(show, "tasks done"))
    found = statistics(run)
    name = Path(prefix).name
    facts = [("Fabric", fabric.name), ("Routing", router), ("Collectives", use.algorithm)]
    _write(run, expansion, outputs, None, lambda: _chakra_page(run, found, name, facts))
    if outputs.json:
        print_json({"trace": prefix, **_numbers(found), "fabric": fabric.name, "routing": router, "seed": use.seed,
                    "algorithm": use.algorithm, **as_json(collectives_of(step, expansion), chosen),
                    **run_as_json(run, found, fabric)})  # fmt: skip
        return
    say = console().print
    say(f"{name} on {step.ranks} GPUs: {units.show_seconds(found.step_time_s)} per step", style="bold", soft_wrap=True)
    _print_reason(found)
    say(_times_table(found))
    say(f"fabric: {fabric.name} ({router}, {use.algorithm})", soft_wrap=True)
    sentences = run.network.sentences() if run.network is not None else ()
    for sentence in (*notes_of(step, use, chosen), *sentences):
        say(sentence, soft_wrap=True)


def _model_page(found: TrainingAnswer) -> str:
    from ropewalk.report.training import training_page

    return training_page(found)


def _chakra_page(run: StepRun, found: StepStatistics, name: str, facts: Sequence[tuple[str, str]]) -> str:
    from ropewalk.report.step import step_page

    subject = f"{name} on {run.step.ranks} GPUs"
    return step_page(run, found, subject=subject, eyebrow="Chakra trace", facts=facts)


def _write(
    run: StepRun, expansion: Expansion, outputs: StepOutputs, names: Sequence[str] | None, page: Callable[[], str]
) -> None:
    """The files that were asked for, one after the other, each whole."""
    stopped = "the files named above are complete, the others were not written"
    with shown_progress("writing files", stopped) as show:
        if outputs.chakra is not None:  # first, because it alone may refuse: files of other ranks may be in the way
            from ropewalk.export.chakra import write_chakra

            show(0, None, "writing the Chakra trace")
            files = write_chakra(run.step, outputs.chakra)
            typer.echo(f"chakra: {files[0]} and {len(files) - 1} more", err=True)
        if outputs.trace is not None:
            from ropewalk.export.chrome_step import chrome_step_trace
            from ropewalk.files import write_whole

            show(0, None, "writing the timeline")
            write_whole(outputs.trace, chrome_step_trace(run, names=names))
            typer.echo(f"timeline: {outputs.trace}", err=True)
        if outputs.tasks is not None:
            show(0, None, "writing the tasks")
            write_table(run.trace, outputs.tasks, expansion)
        if outputs.page is not None:
            show(0, None, "drawing the page")
            write_page(outputs.page, page())


def _numbers(found: StepStatistics) -> dict[str, object]:
    return {
        "step_time_s": found.step_time_s,
        "compute_s": found.compute_s,
        "communication_s": found.communication_s,
        "exposed_communication_s": found.exposed_communication_s,
        "exposed_by_purpose_s": found.exposed_by_purpose_s,
        "bubble_s": found.bubble_s,
        "bottleneck_link": found.bottleneck.name if found.bottleneck else None,
    }


def _model_title(found: StepAnswer) -> str:
    from ropewalk.device.held import device_in_words

    numbers = found.statistics
    parts = [f"{units.show_seconds(numbers.step_time_s)} per step"]
    if numbers.mfu is not None:
        parts.append(f"{100 * numbers.mfu:.1f} % MFU")
    if numbers.tokens_per_s is not None:
        parts.append(f"{numbers.tokens_per_s:,.0f} tokens/s")
    elif numbers.samples_per_s is not None:
        parts.append(f"{numbers.samples_per_s:,.{0 if numbers.samples_per_s >= 1000 else 2}f} samples/s")
    gpus = f"{found.gpus} x {device_in_words(Path(found.question.device).name)}"
    return f"{found.workload.name} on {gpus} ({found.strategy.said()}): {', '.join(parts)}"


def _print_reason(found: StepStatistics) -> None:
    from ropewalk.report.step_words import bottleneck_in_words, reason

    for sentence in (reason(found), bottleneck_in_words(found)):
        console().print(sentence.replace("\u00a0", " ").replace(" → ", "->").replace("µs", "us"), soft_wrap=True)


def _times_table(found: StepStatistics) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("mean over GPUs", "time", "of the step", "critical path"):
        table.add_column(name, justify="left" if name == "mean over GPUs" else "right")
    path = found.path_by_purpose_s
    rows = [
        ("compute", found.compute_s, path.get("compute", 0.0)),
        *((f"exposed: {name}", spent, path.get(name, 0.0)) for name, spent in found.exposed_by_purpose_s.items()),
        ("bubble", found.bubble_s, None),
    ]
    whole = max(found.step_time_s, 1e-300)
    for name, spent, on_path in rows:
        held = "" if on_path is None else units.show_seconds(on_path)
        table.add_row(name, units.show_seconds(spent), f"{100 * spent / whole:.1f} %", held)
    return table


def in_runs(layers: Sequence[str], order: Mapping[str, int]) -> str:
    """Layers of a stage; pieces that do not follow each other in the model stand apart, of many the outermost.

    >>> order = {"embedding": 0, "block 0": 1, "block 1": 2, "block 2": 3, "head": 4}
    >>> in_runs(["embedding", "block 0", "block 2", "head"], order)
    'embedding … block 0, block 2 … head'
    >>> in_runs(["embedding", "block 1", "head"], order)
    'embedding, …, head'
    """
    runs: list[list[str]] = []
    for name in layers:
        if runs and order[name] == order[runs[-1][-1]] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    said = [run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs]
    return ", ".join(said) if len(said) <= MOST_PIECES else f"{said[0]}, …, {said[-1]}"


def _stage_table(found: StepAnswer) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("stage", "layers", "compute", "exposed", "bubble", "memory"):
        table.add_column(name, justify="left" if name == "layers" else "right")
    stages, order = found.stages(), {layer.name: at for at, layer in enumerate(found.workload.layers)}
    for stage in stages if len(stages) <= MOST_STAGES else [*stages[: MOST_STAGES // 2], *stages[-MOST_STAGES // 2 :]]:
        layers = stage["layers"]
        table.add_row(
            str(stage["stage"]),
            f"{len(layers)}: {in_runs(layers, order)}",
            units.show_seconds(stage["compute_s"]),
            units.show_seconds(stage["exposed_communication_s"]),
            units.show_seconds(stage["bubble_s"]),
            units.show_size(sum(stage["memory_bytes"].values())),
        )
    return table


MOST_PIECES = 2
"""Pieces of a stage that are all named."""
MOST_STAGES = 16
"""Rows of the table of stages; of more, the first and the last are shown."""
