"""An answer of the planner as a plan that every command reads, and the question that a plan was the answer to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ropewalk.errors import PlanError
from ropewalk.hardware import as_json as cluster_as_json
from ropewalk.hardware import from_json as cluster_from_json
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.as_json import option_as_json, search_as_json
from ropewalk.planner.question import PlannerQuestion
from ropewalk.plans import Plan
from ropewalk.records import plain, record
from ropewalk.training.planned import plan_of as planned

MADE_BY = "plan"
ASKED = "searched"
"""Where a plan keeps the question of a search over strategies."""


def plan_of(answer: PlannerAnswer) -> Plan:
    """The best strategy with its time; the search that found it stands in the study."""
    kept = {ASKED: question_as_json(answer.question), "plain": option_as_json(answer.plain), **search_as_json(answer)}
    return planned(answer.training, MADE_BY, kept)


def is_searched(plan: Plan) -> bool:
    """Was it found by a search over strategies?"""
    return ASKED in plan.study


def question_of(plan: Plan) -> PlannerQuestion:
    """What to ask to get the same plan again."""
    values = plan.study.get(ASKED)
    if not isinstance(values, dict):
        raise PlanError(
            "this plan has lost the question it answers (study.searched), so the search cannot be rerun: run the plan "
            "with `ropewalk simulate`"
        )
    cluster = cluster_from_json(values.get("cluster", {}), "cluster of the question of a plan")
    stand_in = {name: value for name, value in values.items() if name != "cluster"} | {"cluster": plain(cluster)}
    return record(PlannerQuestion, stand_in, "question of a plan", PlanError)


def question_as_json(question: PlannerQuestion) -> dict[str, Any]:
    """A question as plain values; its cluster as in a cluster file, and cables, which are an answer, left out."""
    values: dict[str, Any] = plain(replace(question, designed=None))
    return values | {"cluster": cluster_as_json(question.cluster)}
