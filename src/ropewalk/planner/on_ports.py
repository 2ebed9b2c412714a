"""The best strategy where ports are still to be wired: strategies in the order of what they could take at best.

At best every server sends what all its ports together do, through a switch that never blocks. Strategies are bounded
there, and wired and simulated one by one, best bound first, until no bound is below the best wired step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ropewalk.codesign.wiring_for import wired
from ropewalk.hardware import Cluster
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.best_first import best_first
from ropewalk.planner.question import PlannerQuestion
from ropewalk.training import NetworkUse, TrainingAnswer, TrainingQuestion, answer
from ropewalk.units import show_seconds
from ropewalk.workload.source import open_workload

MOST_WIRED = 16
"""Strategies that ports are wired for at most."""


def ideal_for(cluster: Cluster) -> Cluster:
    """A switch that never blocks in the place of the wiring: every server sends what all its ports together do.

    >>> from ropewalk.hardware import on_network, read_cluster
    >>> ideal_for(on_network(read_cluster("dgx-h100:4"), "wire")).said
    '4x8 h100, 1 NIC of 3.2 Tbps per server, on switch'
    """
    servers, ports = cluster.equal, cluster.ports
    server = replace(servers, nics=1, nic_bandwidth=ports.degree * servers.nic_bandwidth)
    return replace(cluster, servers=(server,), network="switch")


def best_wired(
    question: PlannerQuestion, ideal: PlannerAnswer, say: Callable[[str], None] = lambda now: None
) -> TrainingAnswer:
    """The fastest strategy that was found, on a network that is wired for its step."""
    workload = open_workload(question.model, 1, question.sequence)
    made: dict[int, TrainingQuestion] = {}

    def seconds(at: int) -> float:
        strategy = ideal.priced.strategy(at, workload)
        say(f"wiring for {strategy.said()}")
        asked = TrainingQuestion(
            question.model,
            question.cluster,
            sequence=question.sequence,
            decided=strategy,
            precision=question.precision,
            network=NetworkUse(seed=question.seed),
            detail="stage",
        )
        made[at] = wired(asked)
        taken = answer(made[at]).statistics.step_time_s
        say(f"{show_seconds(taken)} with ports wired for {strategy.said()}")
        return taken

    found = best_first(ideal.priced.floor_s, ideal.priced.replay, seconds, min(MOST_WIRED, question.most_simulated))
    best = made[found.best]
    return answer(replace(best, network=replace(best.network, level=question.level)))
