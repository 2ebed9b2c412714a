"""A plan with all that a page or a file about it is made of: the design, the run it was timed by, its demands."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.design import Design, RouteFacts
from ropewalk.codesign.evaluate import TimedStep
from ropewalk.routing import Routes
from ropewalk.routing.listed import Path
from ropewalk.task import TaskGraph, TaskKind
from ropewalk.task.step import Act

SUMS = (Act.ALL_REDUCE, Act.REDUCE_SCATTER, Act.ALL_GATHER)
"""What runs on rings; everything else goes from server to server."""


@dataclass(frozen=True, eq=False)
class PlanAnswer:
    """The design and what it was seen to do."""

    design: Design
    timed: TimedStep
    demands: Demands
    paths: tuple[Path, ...]
    """The routes of everything that servers relay, whether or not the sums that run need them."""

    def sent(self) -> tuple[Floats, Floats]:
        """Bytes from server to server in a step: of sums, on the rings they took, and of transfers between pairs."""
        graph, transfer, of_sums = self._transfers()
        servers = self.design.wiring.servers
        matrices = []
        for chosen in (transfer[of_sums], transfer[~of_sums]):
            key = graph.place[chosen].astype(np.int64) * servers + graph.peer[chosen]
            matrices.append(np.bincount(key, graph.amount[chosen], minlength=servers**2).reshape(servers, servers))
        return matrices[0].astype(np.float64), matrices[1].astype(np.float64)

    def carried(self) -> tuple[Floats, Floats]:
        """Bytes on every link in a step, relayed ones included: of sums and of transfers between pairs."""
        graph, transfer, of_sums = self._transfers()
        routes = self.timed.run.trace.routes
        loads = []
        for chosen in (transfer[of_sums], transfer[~of_sums]):
            pair = routes.rows_of(graph, chosen)
            loads.append(routes.link_bytes(pair, graph.amount[chosen]))
        return loads[0], loads[1]

    def _transfers(self) -> tuple[TaskGraph, NDArray[np.int64], NDArray[np.bool_]]:
        run = self.timed.run
        graph = run.trace.graph
        transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        return graph, transfer, np.isin(run.step.act[run.operation_of_task[transfer]], [int(act) for act in SUMS])


def route_facts(routes: Routes) -> RouteFacts:
    """Routes in numbers; a pair counts once, its paths by their shares."""
    hops = np.bincount(routes.pair_of_path, routes.share * routes.hops, minlength=routes.pairs)
    digest = hashlib.sha256()
    for column in (routes.pair_src, routes.pair_dst, routes.path_start, routes.link_start, routes.link):
        digest.update(np.ascontiguousarray(column, "<i8").tobytes())
    digest.update(np.ascontiguousarray(routes.share, "<f8").tobytes())
    return RouteFacts(
        routes.pairs,
        int(routes.hops.max(initial=0)),
        float(hops.mean()) if routes.pairs else 0.0,
        digest.hexdigest(),
    )
