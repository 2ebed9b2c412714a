"""Run work on a lab several times, beside what the flow level predicts for the same transfers and routes."""

from __future__ import annotations

from collections.abc import Iterator
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
from ropewalk.lab.process import LabRun
from ropewalk.lab.request import HASH
from ropewalk.progress import Progress, silent
from ropewalk.routing import Routes
from ropewalk.sim import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import Kind

HEADERS, FRAME = 52, 14
"""Bytes of IP and TCP headers (with timestamps) in a packet, and of Ethernet around it."""
OWN_PATHS = "own paths"
_LEAST_LIMIT_S, _LIMIT = 30.0, 10.0


def measured(
    lab: Lab,
    routing: str,
    work: LabWork,
    repeats: int,
    *,
    rates: dict[int, int] | None = None,
    progress: Progress = silent,
) -> LabAnswer:
    """Predict work and run it; `rates` are links at other speeds than the fabric's, in bits/s of the lab."""
    with _on_routes(lab, work) as ready:
        hashes = routing == HASH and not work.brings_routes
        known = paths_of_connections(ready, work.job.connections) if hashes else work.routes
        # Latencies are part of start-ups: what a namespace adds to them is less than a clock sees.
        fabric = replace(known.fabric, bandwidth=goodput(lab.network, rates or {}), latency=0 * known.fabric.latency)
        known = replace(known, fabric=fabric)
        progress(0, None, "predicting")
        predicted = simulate(work.job.graph, known)
        runs, sent, dropped = _runs(ready, work.job, predicted, repeats, progress)
    return LabAnswer(
        what=work.what,
        details=work.details,
        fabric=known.fabric,
        real_seconds=work.real_seconds,
        routing=OWN_PATHS if work.brings_routes else routing,
        predicted=predicted,
        wire_speed=known.fabric.bandwidth / payload_share(lab.network),
        predicted_bytes=_wire_bytes(lab.network, work.job, known),
        runs=runs,
        sent_bytes=sent,
        groups=tuple(tuple(data.carried) for data in work.job.data),
        messages=sum(map(len, work.job.parts.values())),
        dropped=dropped,
    )


@contextmanager
def _on_routes(lab: Lab, work: LabWork) -> Iterator[Lab]:
    """The lab with the routes that the work brings, or with its own."""
    if not work.brings_routes:
        yield lab
        return
    with lab.routed(pinned(work.routes)) as ready:
        yield ready


def _runs(
    lab: Lab, job: LabJob, predicted: Trace, repeats: int, progress: Progress
) -> tuple[tuple[LabRun, ...], NDArray[np.float64], int]:
    """One run to warm connections up, then those that count; bytes of one of them on every link; packets dropped."""
    limit_s = max(_LEAST_LIMIT_S, _LIMIT * predicted.makespan)
    lab.process.connect(job)
    progress(0, repeats + 1, "warming up")
    lab.process.run(limit_s)
    before, runs = lab.counters(), []
    for number in range(repeats):
        progress(number + 1, repeats + 1, f"run {number + 1} of {repeats}")
        runs.append(lab.process.run(limit_s))
    after = lab.counters()
    sent = np.zeros(lab.network.fabric.links)
    for link, counted in after.items():
        sent[link] = (counted.sent_bytes - before[link].sent_bytes) / repeats
    dropped = sum(after[link].dropped - before[link].dropped for link in after)
    return tuple(runs), sent, dropped


def payload_share(network: LabNetwork) -> float:
    """Payload in a byte of a full packet.

    >>> from ropewalk.fabric import Ring
    >>> payload_share(LabNetwork(Ring(3).build())) == 1448 / 1514
    True
    """
    return (network.settings.mtu - HEADERS) / (network.settings.mtu + FRAME)


def goodput(network: LabNetwork, rates: dict[int, int]) -> NDArray[np.float64]:
    """Bytes/s of payload on every link of the lab."""
    bits = [rates.get(link, network.rate_bits(link)) for link in range(network.fabric.links)]
    return np.array(bits, np.float64) / 8 * payload_share(network)


def _wire_bytes(network: LabNetwork, job: LabJob, routes: Routes) -> NDArray[np.float64]:
    """Bytes of the job on every link, headers included."""
    transfers = np.flatnonzero(job.graph.kind == Kind.TRANSFER)
    rows = routes.rows_of(job.graph, transfers)
    return routes.link_bytes(rows, job.graph.amount[transfers]) / payload_share(network)
