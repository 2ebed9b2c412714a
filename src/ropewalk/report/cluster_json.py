"""A comparison of policies for programs: every number with its interval, and the first seed in full."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ropewalk.report.cluster_verdict import headline, lost_money
from ropewalk.tenancy.compared import Comparison
from ropewalk.tenancy.measures import MEASURES
from ropewalk.tenancy.spread import Spread


def comparison_as_json(found: Comparison, *, gpu_hour: float, jobs: bool = False) -> dict[str, Any]:
    """One object; `kinds` has the first seed as single replays are printed."""
    verdict = found.verdict
    return {
        "headline": headline(found),
        "verdict": {
            "best": verdict.best,
            "runner_up": verdict.runner_up,
            "sooner": _spread(verdict.gain),
            "not_ranked": list(verdict.unranked),
            "larger_than_spread": None if verdict.gain is None or len(found.seeds) < 2 else not verdict.is_level,
        },
        "seeds": [one.seed for one in found.seeds],
        "gpu_hour": gpu_hour,
        "policies": {policy.name: _policy(found, policy.name, gpu_hour) for policy in found.policies},
        "networks_on_the_same_schedule": {
            routing: {"mean_slowdown": _spread(seen[0]), "p99_slowdown": _spread(seen[1])}
            for routing in dict.fromkeys(policy.routing for policy in found.policies if policy.shares)
            if (seen := found.same_schedule(routing)) is not None
        },
        **found.first.as_json(jobs=jobs),
    }


def _policy(found: Comparison, name: str, gpu_hour: float) -> dict[str, Any]:
    return {
        **{measure.name: found.spread(name, measure.name).as_json() for measure in MEASURES},
        "lost_money": lost_money(found, name, gpu_hour),
        "later_than_packed_on_ideal": {
            "network": _spread(found.network_part(name)),
            "scheduling": _spread(found.scheduling_part(name)),
            "both": _spread(found.both_parts(name)),
        },
        "waits_s": found.waits_s(name),
        "by_size": [asdict(group) for group in found.by_size(name)],
        "by_model": [asdict(group) for group in found.by_model(name)],
    }


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    return None if spread is None else spread.as_json()
