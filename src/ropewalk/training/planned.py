"""A plan is a question about training with nothing left open, and the answer that was promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ropewalk.errors import PlanError
from ropewalk.fabric.fingerprint import fingerprint
from ropewalk.plans import Communication, ModelUse, Plan, Prediction
from ropewalk.sim.level import LevelUse
from ropewalk.task.step import Act, Step
from ropewalk.training.answer import StepAnswer
from ropewalk.training.collectives import digest_of
from ropewalk.training.network import NetworkUse
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion


def plan_of(answer: StepAnswer, made_by: str = "simulate", study: Mapping[str, Any] | None = None) -> Plan:
    """What was simulated as a plan, with its times as the prediction.

    >>> from ropewalk.training import answer
    >>> found = answer(TrainingQuestion("gpt2", gpus=2))
    >>> again = answer(question_of(plan_of(found)))
    >>> again.statistics.step_time_s == found.statistics.step_time_s
    True
    """
    asked, found = answer.question, answer.statistics
    if not isinstance(asked.model, str):
        raise PlanError(f"{asked.model.name} was built in Python and has no name: save it as a file first")
    if asked.jitter or asked.stragglers:
        raise PlanError("a plan predicts the time of healthy GPUs: leave jitter and stragglers out")
    return Plan(
        ModelUse(asked.model, asked.sequence, asked.precision),
        asked.place,
        answer.strategy,
        made_by=made_by,
        placement=asked.order,
        communication=Communication(
            answer.router,
            asked.network.algorithm,
            asked.network.collectives,
            answer.transport,
            asked.network.seed,
            digest_of(answer.collectives),
        ),
        designed=asked.network.designed,
        made_for=None if asked.network.designed is not None else fingerprint(answer.fabric),
        prediction=Prediction(
            found.step_time_s,
            found.compute_s,
            found.exposed_communication_s,
            answer.memory.most,
            asked.network.level,
            asked.detail,
            answer.cost_source,
        ),
        study=dict(study or {}),
    )


def changes_since(plan: Plan, answer: StepAnswer) -> list[str]:
    """What runs otherwise than when the plan was written, in sentences; nothing where its word can be kept.

    A run that asks what if, at another level for one, is another run, and nothing is said about it.
    """
    talk, asked, promised = plan.communication, answer.question.network, plan.prediction
    same = (talk.algorithm, talk.collectives, talk.routing) == (asked.algorithm, asked.collectives, answer.router)
    same = same and not (answer.question.jitter or answer.question.stragglers)
    same = same and (plan.designed, plan.cluster) == (asked.designed, answer.question.place)
    if promised is not None:
        same = same and (promised.level, promised.detail) == (asked.level, answer.question.detail)
    if same and talk.digest and talk.digest != digest_of(answer.collectives):
        return [f"Its collectives are built differently than by ropewalk {plan.version}, which wrote the plan."]
    return []


def step_of(plan: Plan) -> Step:
    """The step of a plan, as all ranks see it."""
    return prepared(question_of(plan)).write()


def groups_of(plan: Plan) -> dict[str, list[list[int]]]:
    """By purpose (`data`, `tensor`, ...) the groups of ranks that meet, in the order in which they first do.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.strategy import Strategy
    >>> groups_of(Plan(ModelUse("gpt2", 64), read_cluster("1x4"), Strategy(data=2, tensor=2)))["data"]
    [[0, 2], [1, 3]]
    """
    step = step_of(plan)
    met = np.flatnonzero(step.act >= Act.ALL_REDUCE)
    pairs = dict.fromkeys(zip(step.stream[met].tolist(), step.group[met].tolist(), strict=True))
    found: dict[str, list[list[int]]] = {}
    for stream, group in pairs:
        found.setdefault(step.streams[stream], []).append(step.groups[group].tolist())
    return found


def question_of(plan: Plan, level: LevelUse | None = None) -> TrainingQuestion:
    """What to ask to see a plan run: at the level of its prediction unless given."""
    promised, talk = plan.prediction, plan.communication
    usual = LevelUse() if promised is None else promised.level
    return TrainingQuestion(
        plan.model.name,
        plan.cluster,
        sequence=plan.model.sequence,
        decided=plan.strategy,
        precision=plan.model.precision,
        network=NetworkUse(
            talk.routing,
            talk.algorithm,
            talk.collectives,
            talk.transport,
            talk.seed,
            level=level or usual,
            # Classes of equal tasks are worth finding where a search looked for regular rings, and it did.
            designed=plan.designed,
            symmetry=plan.designed is not None,
        ),
        order=plan.placement,
        detail="auto" if promised is None else promised.detail,
    )
