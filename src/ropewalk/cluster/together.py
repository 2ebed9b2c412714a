"""A few jobs simulated together flow by flow: what the mean over random moments in `rates.py` is measured against.

Every iteration, round and barrier of every job is a task, and the flow simulator gives them exact max-min rates. That
costs too much for a trace and is right for small cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.cluster.allocation import Allocation
from ropewalk.cluster.paths import Network, links_of
from ropewalk.cluster.plant import Plant
from ropewalk.cluster.policies import routing_named
from ropewalk.cluster.rounds import patterns_of
from ropewalk.cluster.work import Exchange, Work
from ropewalk.errors import ClusterError
from ropewalk.routing import Routes
from ropewalk.routing.routes import make_routes
from ropewalk.sim import simulate
from ropewalk.task import Sketch

MOST_TRANSFERS = 200_000


@dataclass(frozen=True)
class Tenant:
    """A job that runs beside others: where it is, what it does how often, and when it begins."""

    allocation: Allocation
    work: Work
    iterations: int
    start_s: float = 0.0


def iteration_times(
    plant: Plant, tenants: Sequence[Tenant], *, routing: str = "ecmp", seed: int = 0
) -> list[NDArray[np.float64]]:
    """Seconds of every iteration of every job, from the flow simulator."""
    sketch, ways = Sketch(), _Ways(plant, routing, seed)
    marks = [_write(sketch, ways, tenant) for tenant in tenants]
    trace = simulate(sketch.graph(), ways.routes(), symmetry=False)
    return [np.diff(trace.end[np.array(mark)]) for mark in marks]


class _Ways:
    """Collects the ways of all flows as links of the plant's fabric."""

    def __init__(self, plant: Plant, routing: str, seed: int) -> None:
        self.plant, self.choose = plant, routing_named(routing)
        self.network = Network(plant, plant.cables, lambda: np.zeros(links_of(plant)), seed)
        self.taken: dict[tuple[int, int], list[int]] = {}
        self.transfers = 0

    def add(self, allocation: Allocation, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
        """Route flows that run at the same time. A pair keeps the way on which it was seen first."""
        plant, gpus = self.plant, np.array(allocation.gpus, np.int64)
        leaf, server = plant.leaf_of_gpu[gpus], gpus // plant.gpus_per_server
        cross = leaf[src] != leaf[dst]
        up, down = np.full(len(src), -1, np.int64), np.full(len(src), -1, np.int64)
        up[cross], down[cross] = self.choose(self.network, allocation, src[cross], dst[cross])
        if (up[cross] < 0).any():
            raise ClusterError("flows that never meet cannot be simulated flow by flow: choose another routing")
        first = 2 * plant.gpus
        for flow, (a, b) in enumerate(zip(gpus[src].tolist(), gpus[dst].tolist(), strict=True)):
            if server[src[flow]] == server[dst[flow]]:
                way = [int(plant.inside_up(a)), int(plant.inside_up(b)) + 1]
            elif cross[flow]:
                way = [int(plant.nic_up(a)), first + int(up[flow]), first + int(down[flow]), int(plant.nic_up(b)) + 1]
            else:
                way = [int(plant.nic_up(a)), int(plant.nic_up(b)) + 1]
            self.taken.setdefault((a, b), way)

    def routes(self) -> Routes:
        pairs = sorted(self.taken)
        ways = [self.taken[pair] for pair in pairs]
        return make_routes(
            self.plant.fabric(),
            np.array([src for src, _ in pairs], np.int32),
            np.array([dst for _, dst in pairs], np.int32),
            np.arange(len(pairs)),
            np.ones(len(pairs)),
            np.repeat(np.arange(len(ways)), [len(way) for way in ways]),
            np.array([link for way in ways for link in way], np.int32),
        )


def _write(sketch: Sketch, ways: _Ways, tenant: Tenant) -> list[int]:
    """All iterations of a job; answers the tasks at which they begin, and the last end."""
    gpu, work = tenant.allocation.gpus[0], tenant.work
    hidden = sum(exchange.overlap_s for exchange in work.exchanges)
    ready = sketch.compute(gpu, tenant.start_s, label="wait")
    marks = [ready]
    for _ in range(tenant.iterations):
        ready = sketch.compute(gpu, max(work.compute_s - hidden, 0.0), after=[ready])
        for exchange in work.exchanges:
            beside = sketch.compute(gpu, exchange.overlap_s, after=[ready], stream=1, label="beside")
            moved = _exchange(sketch, ways, tenant.allocation, exchange, ready)
            ready = sketch.marker(after=[beside, moved])
        marks.append(ready)
    return marks


def _exchange(sketch: Sketch, ways: _Ways, allocation: Allocation, exchange: Exchange, ready: int) -> int:
    plant = ways.plant
    gpus = np.array(allocation.gpus, np.int64)
    leaf, server = np.array(allocation.leaf_of_gpu, np.int64), gpus // plant.gpus_per_server
    for src, dst, pattern in patterns_of(exchange.collective, len(gpus), exchange.group, exchange.stride, leaf, server):
        if pattern.repeat != int(pattern.repeat):
            raise ClusterError(
                f"an {exchange.collective} over {allocation.size} GPUs has more rounds than are written out: take fewer"
            )
        ways.add(allocation, src, dst)
        ways.transfers += int(pattern.repeat) * len(src)
        if ways.transfers > MOST_TRANSFERS:
            raise ClusterError(
                f"these jobs send more than {MOST_TRANSFERS} transfers, too many to simulate one by one: take fewer "
                "GPUs or iterations, or the mean over random moments"
            )
        ends = list(zip(*((np.array(allocation.gpus)[ranks]).tolist() for ranks in (src, dst)), strict=True))
        for _ in range(int(pattern.repeat)):
            size = exchange.size_bytes * pattern.share
            ready = sketch.marker(after=[sketch.transfer(a, b, size, after=[ready]) for a, b in ends])
    return ready
