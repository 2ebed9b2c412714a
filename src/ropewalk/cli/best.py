"""`ropewalk plan` on a network that exists: what should I do with this model on this cluster?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.best_screen import print_answer, print_estimate
from ropewalk.cli.screen import shown_progress, typed, write_page
from ropewalk.documents import json_text
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.cli.plan_options import Outputs
    from ropewalk.planner.answer import PlannerAnswer
    from ropewalk.planner.explain import Explanation
    from ropewalk.planner.question import PlannerQuestion

SAMPLES_PER_GPU = 2
"""Samples of a step for each GPU where no batch is given."""


@dataclass(frozen=True)
class ExplainedRequest:
    """A question, and what is to be explained about its answer."""

    question: PlannerQuestion
    explain: tuple[str, ...] = ()
    engine: str = "processes"


def find_best(asked: ExplainedRequest, outputs: Outputs) -> None:
    """Search, print and write."""
    answer, explanations = _answered(asked)
    _finish(answer, explanations, outputs)


def estimate_best(asked: ExplainedRequest, *, json: bool) -> None:
    """Estimate, explain and print."""
    from ropewalk.planner.estimate import estimate_again, usual
    from ropewalk.planner.explain import named

    for words in asked.explain:
        named(words, usual(asked.question.space))
    with shown_progress() as progress:
        found = estimate_again(asked.question, progress)
        explanations = []
        for words in asked.explain:
            progress(0, None, f"why not {words}?")
            explanations.append(found.explained(words))
    if json:
        typer.echo(json_text(found.as_json() | {"explained": [one.as_json() for one in explanations]}), nl=False)
    else:
        print_estimate(found, explanations)


def rerun_best(path: Path, engine: str, outputs: Outputs) -> None:
    """Search again for what a plan was the answer to, and compare."""
    from ropewalk.planner.planned import plan_of, question_of
    from ropewalk.plans import dumps, read_plan

    before = read_plan(path)
    answer, _ = _answered(ExplainedRequest(question_of(before), engine=engine))
    same = dumps(plan_of(answer)) == dumps(before)
    _finish(answer, (), outputs)
    if not same:
        raise InputError(
            f"{path} does not rerun to the same plan: it was written by ropewalk {before.version} or changed since; "
            "take the plan above, written with --plan"
        )
    typer.echo(f"{path} reruns to the same plan", err=True)


def _answered(asked: ExplainedRequest) -> tuple[PlannerAnswer, tuple[Explanation, ...]]:
    from ropewalk.engines import engine_named
    from ropewalk.planner.explain import explained, named
    from ropewalk.planner.on_ports import planned

    for words in asked.explain:
        named(words, asked.question.space)  # a slip is refused before the search, not behind it
    engine = engine_named(asked.engine)
    with shown_progress() as progress:
        found = planned(asked.question, progress, engine)
        explanations = []
        for words in asked.explain:
            progress(0, None, f"why not {words}?")
            explanations.append(explained(found, words))
    return found, tuple(explanations)


def _finish(answer: PlannerAnswer, explanations: tuple[Explanation, ...], outputs: Outputs) -> None:
    """Write the files, print the table or the JSON."""
    from ropewalk.planner.as_json import as_json
    from ropewalk.planner.planned import plan_of
    from ropewalk.plans import write_plan

    if outputs.plan is not None:
        write_plan(plan_of(answer), outputs.plan)
        typer.echo(f"plan: {outputs.plan}", err=True)
    if outputs.page is not None:
        from ropewalk.report.planner import planner_page

        write_page(outputs.page, planner_page(answer, command=typed()))
    if outputs.json:
        typer.echo(json_text(as_json(answer) | {"explained": [one.as_json() for one in explanations]}), nl=False)
        return
    print_answer(answer, explanations, hint=outputs.plan is None or outputs.page is None)
