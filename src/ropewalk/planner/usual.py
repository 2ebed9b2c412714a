"""Checks of what all strategies of a search have in common, before the search."""

from __future__ import annotations

from ropewalk.device.pricer import Pricer
from ropewalk.errors import Findings, PlanError
from ropewalk.planner.space import Space
from ropewalk.strategy.meanwhile import shared_between
from ropewalk.timetable.named import TIMETABLES
from ropewalk.training.prepared import narrow_findings
from ropewalk.workload.exchange import Meeting
from ropewalk.workload.workload import Workload


def check_usual(space: Space, workload: Workload, prices: Pricer) -> None:
    """Refuse what no strategy for this model could have, all of it at once."""
    usual = space.usual
    findings = Findings(PlanError, f"plan for {workload.name}")
    for problem in narrow_findings(usual, workload, prices):
        findings.add(problem)
    if usual.shared_overlap and all(shared_between(layer.operators) is None for layer in workload.layers):
        findings.add(f"{workload.name} has no shared experts: leave --shared-overlap out")
    has_experts = any(layer.meets(Meeting.DISPATCH) for layer in workload.layers)
    beside = [name for name in space.schedules if TIMETABLES[name].side_by_side]
    if beside and not has_experts:
        findings.add(f"{workload.name} has no expert communication to hide: leave {beside[0]} out")
    if False not in space.fold and not has_experts:
        findings.add(f"{workload.name} has no experts to fold over tensor and context ranks: leave --fold-experts out")
    findings.raise_if_any()
