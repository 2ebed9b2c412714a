"""Which rank runs on which GPU of which server: the rank file of a job.

Frameworks number ranks in one order, tensor ranks first and pipeline stages last (`tp-cp-ep-dp-pp`). Where a plan lays
them over GPUs in another order, the rank file gives every GPU the rank that has its coordinates.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass

import numpy as np

from ropewalk.plans import Plan
from ropewalk.strategy import Placement, Strategy
from ropewalk.strategy.placement import AXES, DEFAULT_ORDER

COLUMNS = ("rank", "node", "slot", "server", "gpu", *AXES)


@dataclass(frozen=True)
class RankPlace:
    """A rank and its GPU."""

    rank: int
    node: int
    """The number of its server among those that work."""
    slot: int
    """The number of its GPU among those of the server that work."""
    server: str
    gpu: int
    coordinates: tuple[int, ...]
    """By `AXES`: of the pipeline, of data, expert, context and tensor parallelism."""


def seats_of(plan: Plan) -> list[RankPlace]:
    """The GPU of every rank, GPU by GPU.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> plan = Plan(ModelUse("gpt2"), read_cluster("1x4"), Strategy(data=2, pipeline=2), placement="tp-pp-dp")
    >>> [seat.rank for seat in seats_of(plan)]
    [0, 2, 1, 3]
    """
    own = Placement(plan.strategy, plan.placement or DEFAULT_ORDER).grid
    usual = Placement(plan.strategy, DEFAULT_ORDER).grid
    rank_of_gpu = np.empty(own.size, np.int64)
    rank_of_gpu[own.ravel()] = usual.ravel()
    every = zip(own.ravel(), np.ndindex(own.shape), strict=True)
    place = {int(gpu): _with_expert(plan.strategy, at, own.shape) for gpu, at in every}
    return [
        RankPlace(int(rank_of_gpu[number]), node, slot, server, gpu, place[number])
        for number, (node, slot, server, gpu) in enumerate(_working(plan)[: own.size])
    ]


def _with_expert(strategy: Strategy, at: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Coordinates of a rank; folded experts are counted over its data, context and tensor ranks in a row."""
    stage, data, expert, context, tensor = at
    if strategy.fold_experts:
        expert = ((data * shape[3] + context) * shape[4] + tensor) % strategy.expert
    return stage, data, expert, context, tensor


def ranks_csv(plan: Plan) -> str:
    """The rank file: rank, number of the node and of the GPU on it, their names, what the rank does."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for seat in seats_of(plan):
        writer.writerow((seat.rank, seat.node, seat.slot, seat.server, seat.gpu, *seat.coordinates))
    return text.getvalue()


def ranks_per_node(plan: Plan) -> list[int]:
    """How many ranks every node runs."""
    counts = Counter(seat.node for seat in seats_of(plan))
    return [counts[node] for node in sorted(counts)]


def _working(plan: Plan) -> list[tuple[int, int, str, int]]:
    """GPUs that work in the order in which a plan counts them: node, slot, server, GPU."""
    lost = set(plan.cluster.failed)
    sizes = [group.gpus for group in plan.cluster.servers for _ in range(group.count)]
    found: list[tuple[int, int, str, int]] = []
    node = 0
    for server, size in enumerate(sizes):
        gpus = [gpu for gpu in range(size) if not {f"server{server}", f"gpu{server}.{gpu}"} & lost]
        found += [(node, slot, f"server{server}", gpu) for slot, gpu in enumerate(gpus)]
        node += bool(gpus)
    return found
