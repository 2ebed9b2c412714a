"""The order that was found as a plan that every command reads."""

from __future__ import annotations

from ropewalk.overlap.answer import OverlapAnswer, order_of
from ropewalk.overlap.simulated import simulated
from ropewalk.plans import Plan
from ropewalk.training.planned import plan_of as planned


def plan_of(answer: OverlapAnswer) -> Plan:
    """Data parallelism with gradients in the best order that a step can run, and the time that this promises."""
    found = answer.methods_as_json()
    kept = {name: found[name] for name in ("method", "lower_bound_s", "alternatives", "found_by")}
    return planned(simulated(answer.question.training, order_of(answer)), "overlap", kept)
