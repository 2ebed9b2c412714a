"""Run a collective on a lab several times, beside what the flow level predicts for the same transfers and routes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.group import whole_fabric
from ropewalk.collectives.program import Program
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.forwarding import every_pair, pinned
from ropewalk.lab.hash_paths import paths_of_connections
from ropewalk.lab.job import LabJob, job_of_program, rounds_of, whole_size
from ropewalk.lab.lab import Lab
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import LabRun
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.saved import routes_of, saved_paths
from ropewalk.progress import Progress, silent
from ropewalk.routing import Routes, shortest
from ropewalk.sim import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import Kind, Lockstep

HEADERS, FRAME = 52, 14
"""Bytes of IP and TCP headers (with timestamps) in a packet, and of Ethernet around it."""
OWN_PATHS = "own paths"
_LEAST_LIMIT_S, _LIMIT = 30.0, 10.0


@dataclass(frozen=True, eq=False)
class MadeCollective:
    """What is run: a program on hosts, and the routes that it brings."""

    program: Program
    rounds: Lockstep
    size_bytes: int
    own: Routes | None


def subject_of(network: LabNetwork, question: LabQuestion) -> MadeCollective:
    """The collective made for all hosts of a lab, proved."""
    question.check()
    group = replace(whole_fabric(network.fabric, own_paths=True), segments=question.segments)
    made = COLLECTIVES.fitting(question.collective, question.act, group).make[question.act](group)
    program = made.program if isinstance(made, Schedule) else made
    program.check()
    hosts = made.hosts if isinstance(made, Schedule) else np.arange(program.ranks, dtype=np.int32)
    size = whole_size(program, question.size_bytes)
    own = completed(made.routes) if isinstance(made, Schedule) else None
    return MadeCollective(program, rounds_of(program, size, hosts), size, own)


def completed(routes: Routes) -> Routes:
    """Routes with the shortest path between all hosts that have none: acknowledgements need them."""
    fabric = routes.fabric
    known = set(zip(routes.pair_src.tolist(), routes.pair_dst.tolist(), strict=True))
    src, dst = every_pair(fabric)
    others = np.array([pair not in known for pair in zip(src.tolist(), dst.tolist(), strict=True)], bool)
    further = saved_paths(shortest(fabric, src[others], dst[others])) if others.any() else ()
    return routes_of(fabric, sorted((*saved_paths(routes), *further), key=lambda path: path[:2]))


def measured(
    lab: Lab,
    routing: str,
    routes: Routes | None,
    question: LabQuestion,
    *,
    rates: dict[int, int] | None = None,
    progress: Progress = silent,
) -> LabAnswer:
    """Predict and run a collective; `rates` are links at other speeds than the fabric's, in bits/s of the lab."""
    subject = subject_of(lab.network, question)
    with _on_routes(lab, subject, routes) as (ready, known):
        job = job_of_program(
            subject.program, subject.rounds, known, congestion=lab.network.settings.congestion, shared=routes is None
        )
        if routes is None and subject.own is None:
            known = paths_of_connections(ready, job.connections)
        known = replace(known, fabric=replace(known.fabric, bandwidth=goodput(lab.network, rates or {})))
        progress(0, None, "predicting")
        predicted = simulate(job.graph, known)
        runs, sent, dropped = _runs(ready, job, predicted, question.repeats, progress)
    return LabAnswer(
        question=question,
        fabric=known.fabric,
        scale=lab.network.scale,
        routing=routing if subject.own is None else OWN_PATHS,
        size_bytes=subject.size_bytes,
        predicted=predicted,
        wire_speed=known.fabric.bandwidth / payload_share(lab.network),
        predicted_bytes=_wire_bytes(lab.network, job, known),
        runs=runs,
        sent_bytes=sent,
        dropped=dropped,
    )


@contextmanager
def _on_routes(lab: Lab, subject: MadeCollective, routes: Routes | None) -> Iterator[tuple[Lab, Routes]]:
    """The lab with the routes that the collective brings, or with its own."""
    if subject.own is not None:
        with lab.routed(pinned(subject.own)) as ready:
            yield ready, subject.own
    elif routes is not None:
        yield lab, routes
    else:  # the kernel hashes: connections are those of pairs, whatever path they take
        yield lab, shortest(lab.network.fabric, *subject.rounds.all_pairs())


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
