"""A design as a plan that every command reads, and the question that a plan was the answer to."""

from __future__ import annotations

from ropewalk.codesign.answer import PlanAnswer
from ropewalk.codesign.job import job_of
from ropewalk.codesign.question import PlanQuestion
from ropewalk.errors import PlanError
from ropewalk.plans import Communication, Designed, ModelUse, Plan
from ropewalk.strategy.seating import strategy_of
from ropewalk.training import answer as simulated
from ropewalk.training.network import DESIGNED
from ropewalk.training.planned import plan_of as planned
from ropewalk.training.planned import question_of as asking

MADE_BY = "plan"
KEPT = (
    "baselines", "estimated_step_time_s", "tax", "cost", "all_reduce_bytes", "mp_bytes", "routes", "history", "ended",
    "question", "notes",
)  # fmt: skip
"""Of the study, what no other part of the plan says."""


def plan_of(answer: PlanAnswer) -> Plan:
    """The wiring, its routes, the seats and the time that a simulation of just this plan promises for them."""
    design = answer.design
    asked, pricer = design.question, job_of(design.question, design.micro_batches).pricer
    decided = Plan(
        ModelUse(asked.workload_name, asked.sequence, asked.precision),
        asked.cluster,
        strategy_of(design.seating, pricer.batch, design.micro_batches, pricer.optimiser),
        communication=Communication(DESIGNED, design.collectives, seed=asked.seed),
        designed=Designed(design.wiring, answer.paths),
    )
    record = design.as_json()
    return planned(simulated(asking(decided)), MADE_BY, {name: record[name] for name in KEPT})


def question_of(plan: Plan) -> PlanQuestion:
    """What to ask to get the same plan again."""
    if plan.made_by != MADE_BY:
        raise PlanError(
            f"this plan was made by `ropewalk {plan.made_by}`, not by `ropewalk plan`, so the search cannot be rerun: "
            "run the plan with `ropewalk simulate`"
        )
    if not isinstance(plan.study.get("question"), dict):
        raise PlanError(
            "this plan has lost the question it answers (study.question), so the search cannot be rerun: "
            "run the plan with `ropewalk simulate`"
        )
    return PlanQuestion.from_json(plan.study["question"])
