"""Forests of every collective, and simulations of their schedules, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from forest_loads import prove_loads

from ropewalk.collectives.forest import (
    AllReduceForest,
    Forest,
    all_gather_forest,
    all_reduce_forest,
    broadcast_forest,
    reduce_forest,
    reduce_scatter_forest,
)
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.optimum import Network
from ropewalk.collectives.schedule import Schedule
from ropewalk.sim import simulate, simulate_rounds
from ropewalk.task import TaskKind, lockstep, unroll

GROWERS: dict[str, Callable[[Network], Forest | AllReduceForest]] = {
    "allgather": all_gather_forest,
    "reducescatter": reduce_scatter_forest,
    "allreduce": all_reduce_forest,
    "broadcast": lambda network: broadcast_forest(network, int(network.members[0])),
    "reduce": lambda network: reduce_forest(network, int(network.members[-1])),
}


def proved_schedule(forest, collective, segments, **options) -> Schedule:
    """A schedule whose program, routes and loads have been proved: no link needs longer than the forest promises."""
    schedule = forest_schedule(forest, collective, segments, **options)
    schedule.program.check()
    schedule.routes.check()
    relays = options.get("relays_as_ranks", False)
    assert prove_loads(schedule, forest, collective, relays_as_ranks=relays) * forest.algbw <= 1
    return schedule


def depth_of(schedule: Schedule, segments: int) -> int:
    """Rounds that the first segment takes."""
    return len(schedule.program.rounds) - segments + 1


def shared_seconds(schedule: Schedule, size_bytes: float, start_up_s: float = 0.0) -> float:
    """The time where links share themselves out evenly among what is sent."""
    rounds = lockstep(schedule.program, size_bytes, start_up_s, schedule.hosts)
    return simulate_rounds(rounds, schedule.routes).makespan


def paced_seconds(schedule: Schedule, size_bytes: float, segments: int, start_up_s: float = 0.0) -> float:
    """The time where no send is faster than its tree: each takes at least what a segment takes at the promised rate."""
    graph = unroll(lockstep(schedule.program, size_bytes, start_up_s, schedule.hosts))
    least = size_bytes / segments / float(schedule.promise)
    pace = np.where(graph.kind == TaskKind.TRANSFER, graph.amount / least, np.inf)
    return simulate(replace(graph, rate_cap=pace), schedule.routes).makespan
