"""Jobs of a cluster at once on a leaf-spine lab, placed and routed as `ropewalk cluster` does, as a run of a testbed.

A policy gives each job its GPUs, and dedicated links where it isolates jobs; a moment of the cluster is written as one
task graph with the path of every flow. Under `ecmp` the kernel of the lab hashes instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk import units
from ropewalk.errors import ClusterError
from ropewalk.lab.allocated import written
from ropewalk.lab.job import LabWork, job_of_graph
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.request import HASH
from ropewalk.lab.suite.sizing import MEGABYTE, TRIED_BYTES, rough_run
from ropewalk.lab.suite.testbed import Read, Ready
from ropewalk.routing import shortest
from ropewalk.task import TaskGraph, TaskKind
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES, Policy
from ropewalk.tenancy.snapshot.moment import moment_of_state
from ropewalk.tenancy.snapshot.tasks import Together
from ropewalk.tenancy.snapshot.tenant import Moment
from ropewalk.tenancy.work import Iteration, JobExchange

ECMP = "ecmp"
PAUSE = 1.25
"""Jobs that run one after the other begin so many times their own time apart: a late one does not meet the next."""


@dataclass(frozen=True)
class JobsSetup:
    """Jobs that each run one exchange; the compared time is their mean."""

    plant: str
    policy: str
    collective: str
    gpus: tuple[int, ...]
    """Of every job, in the order of their arrival."""
    bandwidth: str = "20Mbps"
    one_by_one: bool = False
    """Each job alone on the network, one after the other."""

    @property
    def hashed(self) -> bool:
        return self.policy == ECMP

    @property
    def unit(self) -> str:
        return "MB per rank"

    def ready(self, seconds: float, seed: int) -> Ready:
        tried = written(self._moment(TRIED_BYTES, seed))
        network = LabNetwork(tried.routes.fabric)
        took = _mean_of_jobs(tried)(rough_run(network, tried.graph, tried.routes).end)
        turn = seconds / len(self.gpus) if self.one_by_one else 0.0
        size = max(1, round(TRIED_BYTES * (turn or seconds) / took))
        jobs = written(self._moment(size, seed, PAUSE * turn))
        graph, routes = jobs.graph, jobs.routes
        if self.hashed:
            # Connections are those of pairs, whatever path they take.
            graph, routes = _unrouted(graph), shortest(network.fabric, *_pairs(graph))
        details = {"jobs": list(self.gpus), "exchange": self.collective, "size_bytes": size, "policy": self.policy}
        what = f"{self.collective} of {len(self.gpus)} jobs {'one after the other' if self.one_by_one else 'at once'}"
        job = job_of_graph(graph, routes, {}, network.settings.congestion)
        work = LabWork(what, details, job, routes, False, 1 / network.scale)
        read = _mean_of_jobs(jobs)
        if self.hashed:
            return Ready(network, HASH, None, work, size / MEGABYTE, read)
        return Ready(network, self.policy, routes, work, size / MEGABYTE, read)

    def _moment(self, size: float, seed: int, apart_s: float = 0.0) -> Moment:
        """All jobs where the policy puts them; each begins its exchange so long after the one before it."""
        policy = POLICIES[self.policy]
        state = policy.occupancy(plant(self.plant, 1, bandwidth=units.bandwidth(self.bandwidth)))
        works = {}
        for number, gpus in enumerate(self.gpus):
            works[_placed(state, policy, f"job{number}", gpus).job] = Iteration(
                0.0, (JobExchange(self.collective, size),)
            )
        moment = moment_of_state(policy, state, works, seed)
        starts = (replace(one, start_s=number * apart_s) for number, one in enumerate(moment.tenants))
        return replace(moment, tenants=tuple(starts))


def _placed(state: Occupancy, policy: Policy, job: str, gpus: int) -> Allocation:
    found = policy.make(state, job, gpus)
    if not isinstance(found, Allocation):
        raise ClusterError(f"{job} of {gpus} GPUs waits under {policy.name}: {found.explanation}")
    state.place(found)
    return found


def _unrouted(graph: TaskGraph) -> TaskGraph:
    """The same tasks without the rows of routes that they named: the kernel routes them."""
    return replace(graph, route=np.full_like(graph.route, -1))


def _pairs(graph: TaskGraph) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    transfer = graph.kind == TaskKind.TRANSFER
    return graph.place[transfer], graph.peer[transfer]


def _mean_of_jobs(jobs: Together) -> Read:
    """The mean time of a job, from its beginning to its end."""

    def read(end: NDArray[np.float64]) -> float:
        return float(np.mean([of_job[-1] - of_job[0] for of_job in jobs.ends_s(end)]))

    return read
