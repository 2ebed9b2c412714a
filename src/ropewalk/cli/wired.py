"""`ropewalk plan` on ports to be wired: how should I wire the network and split the model, together?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.plan_screen import print_at_level, print_design
from ropewalk.cli.screen import shown_progress, write_page
from ropewalk.documents import json_text
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.cli.plan_options import Outputs
    from ropewalk.codesign.answer import PlanAnswer
    from ropewalk.codesign.question import PlanQuestion
    from ropewalk.plans import Plan
    from ropewalk.sim.level import LevelUse
    from ropewalk.training import TrainingAnswer


def wire(question: PlanQuestion, engine: str, level: LevelUse, outputs: Outputs) -> None:
    """Search, print and write."""
    _finish(_answered(question, engine), level, outputs)


def _answered(question: PlanQuestion, engine: str) -> PlanAnswer:
    from ropewalk.codesign.study import answer

    with shown_progress() as progress:
        return answer(question, progress, engine=engine)


def rewire(path: Path, engine: str, level: LevelUse, outputs: Outputs) -> None:
    """Run the search of a plan again, and compare."""
    from ropewalk.codesign.planned import plan_of, question_of
    from ropewalk.plans import dumps, read_plan

    before = read_plan(path)
    answer = _answered(question_of(before), engine)
    same = dumps(plan_of(answer)) == dumps(before)
    _finish(answer, level, outputs)
    if not same:
        raise InputError(
            f"{path} does not rerun to the same plan: it was written by ropewalk {before.version} or changed since; "
            "take the plan above, written with --plan"
        )
    typer.echo(f"{path} reruns to the same plan", err=True)


def _finish(answer: PlanAnswer, level: LevelUse, outputs: Outputs) -> None:
    """Write the files, print the table or the JSON."""
    from ropewalk.codesign.planned import plan_of
    from ropewalk.files import write_whole
    from ropewalk.plans import write_plan

    design, closer = answer.design, None
    if outputs.plan is not None or level.knows_packets:
        plan = plan_of(answer)
        closer = _at_level(plan, level) if level.knows_packets else None
    if outputs.plan is not None:
        write_plan(plan, outputs.plan)
        typer.echo(f"plan: {outputs.plan}", err=True)
    if outputs.patch is not None:
        from ropewalk.export.wiring import patch_csv

        write_whole(outputs.patch, patch_csv(design.wiring, single_panel=design.question.single_panel))
        typer.echo(f"patch list: {outputs.patch}", err=True)
    if outputs.tables is not None:
        from ropewalk.export.wiring import tables_csv
        from ropewalk.routing.listed import routes_listed

        write_whole(outputs.tables, tables_csv(routes_listed(design.wiring.fabric(), answer.paths)))
        typer.echo(f"forwarding tables: {outputs.tables}", err=True)
    if outputs.page is not None:
        from ropewalk.report.design import design_page

        write_page(outputs.page, design_page(answer))
    if outputs.json:
        record = design.as_json() | ({} if closer is None else {"at_level": closer.network_as_json()})
        typer.echo(json_text(record), nl=False)
        return
    print_design(design, hint=outputs.plan is None or outputs.page is None)
    if closer is not None:
        print_at_level(design, closer)


def _at_level(plan: Plan, level: LevelUse) -> TrainingAnswer:
    """The plan that was found, with the network simulated more finely than the search did."""
    from ropewalk.training import answer
    from ropewalk.training.planned import question_of as running

    with shown_progress(f"simulating the plan at level {level.level}") as progress:
        return answer(running(plan, level), progress)
