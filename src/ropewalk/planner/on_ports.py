"""The best strategy where ports are still to be wired: planned on an ideal switch, then wired for the best few.

No wiring lets a server send more than its ports do, so what no strategy beats on a switch that joins all servers at
that bandwidth, no strategy beats on any wiring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ropewalk.codesign.wiring_for import wired
from ropewalk.hardware import Cluster
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.question import PlannerQuestion
from ropewalk.training import NetworkUse, TrainingAnswer, TrainingQuestion, answer
from ropewalk.workload.source import open_workload

FINALISTS = 3
"""Strategies that the ports are wired for."""


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
    """The fastest of the best few strategies, each on a network that is wired for its step."""
    workload = open_workload(question.model, 1, question.sequence)
    order = np.argsort(ideal.simulated_s, kind="stable")[:FINALISTS]
    found = []
    for at in order[np.isfinite(ideal.simulated_s[order])].tolist():
        strategy = ideal.priced.strategy(at, workload)
        say(f"wiring for {strategy.said()}")
        asked = TrainingQuestion(
            question.model,
            question.cluster,
            sequence=question.sequence,
            decided=strategy,
            precision=question.precision,
            network=NetworkUse(algorithm=ideal.best.algorithm, seed=question.seed, level=question.level),
            detail="stage",
        )
        found.append(answer(wired(asked)))
    return min(found, key=lambda one: one.statistics.step_time_s)
