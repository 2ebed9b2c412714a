"""Run work on a lab several times, beside what is predicted for the same transfers and routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.forwarding import pinned
from ropewalk.lab.hash_paths import paths_of_connections
from ropewalk.lab.job import LabJob, LabWork
from ropewalk.lab.lab import Lab
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.predict import flow_level, flow_level_with_faults, payload_share, predictions
from ropewalk.lab.request import HASH
from ropewalk.lab.runs import curves_seen, repeated
from ropewalk.lab.taken import routes_taken
from ropewalk.lab.timed import TimedFault
from ropewalk.progress import Progress, silent
from ropewalk.routing import Routes
from ropewalk.sim.changing import NEVER_S
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind

OWN_PATHS = "own paths"
_LEAST_LIMIT_S, _LIMIT = 30.0, 10.0
_SURE_S = 5.0


def measured(
    lab: Lab,
    routing: str,
    work: LabWork,
    repeats: int,
    *,
    rates: dict[int, int] | None = None,
    faults: Sequence[TimedFault] = (),
    levels: Sequence[str] = ("flow",),
    progress: Progress = silent,
) -> LabAnswer:
    """Predict work and run it; `rates` are links at other speeds than the fabric's, in bits/s of the lab.

    `faults` happen in every run that counts; `levels` are those at which it is predicted, the flow level always.
    """
    with _on_routes(lab, work) as ready:
        hashes = routing == HASH and not work.brings_routes
        known = paths_of_connections(ready, work.job.connections) if hashes else work.routes
        # Latencies are part of start-ups: what a namespace adds to them is less than a clock sees.
        fabric = replace(known.fabric, bandwidth=speeds(lab.network, rates or {}), latency=0 * known.fabric.latency)
        known = replace(known, fabric=fabric)
        progress(0, None, "predicting")
        predicted, load = flow_level(lab.network, work.job.graph, known)
        quiet_s = predicted.makespan
        if faults:
            predicted = flow_level_with_faults(load, faults)
        further = predictions(load, predicted, levels)
        with ready.fair(work.job.connections, known):
            seen = repeated(
                ready, work.job, repeats, _limit_s(quiet_s, predicted, faults), faults, rates or {}, progress
            )
    return LabAnswer(
        what=work.what,
        details=work.details,
        fabric=predicted.routes.fabric,
        real_seconds=work.real_seconds,
        routing=OWN_PATHS if work.brings_routes else routing,
        predicted=predicted,
        levels=further,
        curves=tuple(curves_seen(lab.network, run) for run in seen.runs),
        wire_speed=known.fabric.bandwidth,
        predicted_bytes=_wire_bytes(lab.network, work.job, known),
        runs=seen.runs,
        sent_bytes=seen.sent_bytes,
        fair=lab.network.settings.fair,
        groups=tuple(tuple(data.carried) for data in work.job.data),
        messages=sum(map(len, work.job.parts.values())),
        dropped=seen.dropped,
        faults=tuple(faults),
        retransmitted=seen.retransmitted,
        gone=seen.gone,
        taken=routes_taken(lab.network, work.job.connections, known, seen.caught),
    )


def _limit_s(quiet_s: float, predicted: Trace, faults: Sequence[TimedFault]) -> float:
    """How long a run may take: where it waits for a link that stays down, no longer than it takes to be sure."""
    if predicted.makespan < NEVER_S:
        return max(_LEAST_LIMIT_S, _LIMIT * predicted.makespan)
    return max(fault.at_s for fault in faults) + max(_SURE_S, 2 * quiet_s)


@contextmanager
def _on_routes(lab: Lab, work: LabWork) -> Iterator[Lab]:
    """The lab with the routes that the work brings, or with its own."""
    if not work.brings_routes:
        yield lab
        return
    with lab.routed(pinned(work.routes)) as ready:
        yield ready


def speeds(network: LabNetwork, rates: dict[int, int]) -> NDArray[np.float64]:
    """Bytes/s of every link of the lab, headers included."""
    bits = [rates.get(link, network.rate_bits(link)) for link in range(network.fabric.links)]
    return np.array(bits, np.float64) / 8


def _wire_bytes(network: LabNetwork, job: LabJob, routes: Routes) -> NDArray[np.float64]:
    """Bytes of the job on every link, headers included."""
    transfers = np.flatnonzero(job.graph.kind == TaskKind.TRANSFER)
    rows = routes.rows_of(job.graph, transfers)
    return routes.link_bytes(rows, job.graph.amount[transfers]) / payload_share(network)
