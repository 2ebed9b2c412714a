"""From a question about pipelines to its answer: the planner searches by its clock, the simulation decides."""

from __future__ import annotations

from ropewalk.pipeline.answer import PipelineAnswer
from ropewalk.pipeline.on_cluster import on_cluster
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.question import PipelineQuestion
from ropewalk.plans import Plan
from ropewalk.progress import Progress, silent
from ropewalk.training.planned import plan_of as planned


def answer(question: PipelineQuestion, progress: Progress | None = None) -> PipelineAnswer:
    """The stages, replicas, places and timetable that make a step shortest, beside all others.

    >>> from ropewalk.hardware import read_cluster
    >>> small = "gpt:layers=2,hidden=128,heads=4,vocabulary=512"
    >>> found = answer(PipelineQuestion(small, read_cluster("1x2"), batch=4, sequence=32, schedules=("1f1b",)))
    >>> found.promised_s == plan_of(found).prediction.step_time_s
    True
    """
    say = progress or silent
    say(0, None, "pricing the model")
    model, machines, terms = question.subject.model, question.machines, question.terms
    say(0, None, "searching cuts, replicas, places and timetables")
    found = plan(model, machines, terms)
    return on_cluster(
        found,
        question.subject.trained,
        question.cluster,
        question.network,
        lambda done, total: say(done, total, "simulating the best plans"),
    )


def plan_of(answer: PipelineAnswer) -> Plan:
    """The best plan as the file that every command reads."""
    return planned(answer.simulated[0].training, "pipeline", {"estimated_step_time_s": answer.step_s})
