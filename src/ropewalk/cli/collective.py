"""`ropewalk collective`: how fast can this exchange be on this fabric, and what reaches it?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.collective_files import check_exports, export_schedule, format_of, written_schedule
from ropewalk.cli.collective_options import CollectiveRunOptions, GroupOptions, MethodOptions, SizeOptions
from ropewalk.cli.collective_screen import print_answer
from ropewalk.cli.lists import each, not_empty
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.mix_options import MixOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, fabric_named, group_named, host_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.execute import RunReport
    from ropewalk.plans import Plan
    from ropewalk.progress import Progress
    from ropewalk.synthesis import CollectiveAnswer, CollectiveQuestion


@within_memory
@with_options
def collective_command(
    kind: str = typer.Argument(
        help="allreduce, allgather, reducescatter, broadcast, reduce or alltoall.", metavar="KIND"
    ),
    named: str | None = typer.Argument(None, help=NAMED, metavar="[FABRIC]"),
    *,
    place: ClusterOptions,
    who: GroupOptions,
    how: MethodOptions,
    what: SizeOptions,
    mixing: MixOptions,
    runs: CollectiveRunOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Find the optimal bandwidth of a collective on a fabric, what limits it, and a schedule that reaches it.

    Example: `ropewalk collective allreduce dgx-a100:2 --export schedule.json --page collective.html`

    On a cluster: `ropewalk collective allreduce --cluster 2x8 --device a100`
    """
    from ropewalk.collectives.mixer import FREE

    require_outputs(page, runs.plan, *runs.export, read=(named, place.cluster, place.fabric))
    for path in runs.export:
        format_of(path)
    if runs.run:
        from ropewalk.execute.torch_extra import require_torch

        require_torch()
    before = plan_named(named)
    changed = None if runs.plan is None else _with_collective(before, who.group, how)
    question = replace(_question(kind, named, before, place, who, how, what), mixer=mixing.mixer() or FREE)
    check_exports(question, runs.export, run=runs.run)
    answer, report = _answered(question, runs)
    if runs.plan is not None and changed is not None:
        _write_plan(changed, runs.plan)
    if page is not None:
        from ropewalk.report import collective_page

        write_page(page, collective_page(answer, report))
    if json:
        print_json(answer.as_json() | ({"run": _run_as_json(report)} if report is not None else {}))
    else:
        print_answer(answer, report, page)
    if report is not None and not report.agrees:
        raise typer.Exit(1)


def _with_collective(plan: Plan | None, group: str | None, how: MethodOptions) -> Plan:
    """The plan with this collective for the purpose of the group."""
    from ropewalk.collectives.choice import PURPOSES, collective_choice

    purpose = (group or "").partition(":")[0]
    if plan is None or purpose not in PURPOSES:
        raise InputError(
            f"--plan needs a plan and one of its groups: name plan.json and --group {' or '.join(PURPOSES)}"
        )
    if how.in_network or how.name == "fixed":
        raise InputError("--plan keeps collectives by name: leave --in-network and --trees-per-root out")
    talk = plan.communication
    chosen = collective_choice(talk.algorithm).having(purpose, how.name)
    return replace(plan, communication=replace(talk, algorithm=str(chosen), digest=""))


def _write_plan(plan: Plan, path: Path) -> None:
    """Simulate the plan and write it with the time that it now promises."""
    from ropewalk.plans import write_plan
    from ropewalk.training import answer
    from ropewalk.training.planned import plan_of, question_of

    with shown_progress("simulating the plan") as progress:
        made = plan_of(answer(question_of(plan), progress), "collective", plan.study)
    write_plan(made, path)
    assert made.prediction is not None
    was = "" if plan.prediction is None else f", {units.show_seconds(plan.prediction.step_time_s)} before"
    now = units.show_seconds(made.prediction.step_time_s)
    typer.echo(f"plan: {path} ({made.communication.algorithm}: {now} per step{was})", err=True)


def _question(
    kind: str, named: str | None, plan: Plan | None, place: ClusterOptions, who: GroupOptions, how: MethodOptions,
    what: SizeOptions,
) -> CollectiveQuestion:  # fmt: skip
    from ropewalk.synthesis import CollectiveQuestion

    found = fabric_named(named, place, plan=plan, hosts=who.hosts)
    return CollectiveQuestion(
        kind,
        found,
        group=None if who.group is None else group_named(who.group, found, plan),
        root=None if who.root is None else host_named(found, who.root),
        shards=who.parts,
        host_limits=who.limits(found.hosts),
        in_network=how.in_network,
        method=how.name,
        trees_per_root=how.trees_per_root,
        epsilon=how.epsilon,
        size_bytes=units.size(what.size_of_buffer),
        start_up_s=units.seconds(what.start_up),
        sizes=each(what.sizes, units.size),
        compare=what.compare,
    )


def _answered(question: CollectiveQuestion, runs: CollectiveRunOptions) -> tuple[CollectiveAnswer, RunReport | None]:
    """The answer, its files written and its schedule run where that was asked for."""
    from ropewalk.synthesis import answer

    with shown_progress() as progress:
        found = answer(question, progress)
        if runs.export:
            progress(0, None, "writing files")
        written = export_schedule(found, runs.export, runs.segments)
        report = _run(found, runs, progress) if runs.run else None
    for line in written:
        typer.echo(line, err=True)
    return found, report


def _run(answer: CollectiveAnswer, asked: CollectiveRunOptions, progress: Progress) -> RunReport:
    from ropewalk.execute import run_locally

    schedule = written_schedule(answer, asked.segments)
    progress(0, None, f"running it in {schedule.program.ranks} processes")
    sizes = not_empty(each(asked.run_size, units.size), "--run-size")
    return run_locally(schedule, answer.question.collective, sizes=sizes, seed=asked.seed)


def _run_as_json(report: RunReport) -> dict[str, object]:
    """What came of a run; sizes are bytes, times seconds."""
    rows = [{**asdict(row), "agrees": row.agrees} for row in report.rows]
    return {**asdict(report), "agrees": report.agrees, "rows": rows}
