"""A job run again and again on a lab, with what was seen meanwhile: links that flows took, bytes, drops, faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import LabError
from ropewalk.lab.job import LabJob
from ropewalk.lab.lab import Lab
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import Caught, JobStuck, LabRun
from ropewalk.lab.result import LinkCurves
from ropewalk.lab.timed import TimedFault, happening
from ropewalk.progress import Progress
from ropewalk.units import show_seconds

MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class ObservedRuns:
    """What was seen of all runs."""

    runs: tuple[LabRun, ...]
    """Those that count."""
    sent_bytes: NDArray[np.float64]
    """Of one of them, on every link."""
    dropped: int
    retransmitted: int
    caught: list[Caught]
    """In the run before, in which connections warm up."""
    gone: tuple[str, ...]
    """Links that somebody rewired meanwhile."""


def repeated(
    lab: Lab,
    job: LabJob,
    repeats: int,
    limit_s: float,
    faults: Sequence[TimedFault],
    rates: Mapping[int, int],
    progress: Progress,
) -> ObservedRuns:
    """One run to warm connections up and to see which links they take, then those that count, with their faults."""
    with lab.process.beside() as other:
        other.capture()
        lab.process.connect(job)
        progress(0, repeats + 1, "warming up")
        _one(lab, job, limit_s, ())
        caught = other.caught()
        before, again, runs = lab.counters(), lab.process.retransmitted(), []
        for number in range(repeats):
            progress(number + 1, repeats + 1, f"run {number + 1} of {repeats}")
            with happening(replace(lab, process=other), faults, rates) if faults else nullcontext():
                runs.append(_one(lab, job, limit_s, faults))
        after = lab.counters()
    sent = np.mean([curves_seen(lab.network, run).sent_bytes[-1] for run in runs], axis=0)
    for link, counted in after.items():
        sent[link] = (counted.sent_bytes - before[link].sent_bytes) / repeats
    dropped = sum(counted.dropped - before[link].dropped for link, counted in after.items())
    gone = tuple(lab.network.fabric.link_name(link) for link in lab.network.end_of_link if link not in after)
    return ObservedRuns(tuple(runs), sent, dropped, lab.process.retransmitted() - again, caught, gone)


def _one(lab: Lab, job: LabJob, limit_s: float, faults: Sequence[TimedFault]) -> LabRun:
    """One run; where it does not end, the transfers that stalled are named."""
    try:
        return lab.process.run(limit_s)
    except JobStuck as stuck:
        if not stuck.silent:
            raise
        names, graph = lab.network.fabric.node_names, job.graph
        said = [
            f"{names[graph.place[task]]} to {names[graph.peer[task]]} since {show_seconds(since)}"
            for task, since in sorted(stuck.silent, key=lambda one: one[1])
        ]
        more = "" if len(said) <= MOST_NAMED else f" and {len(said) - MOST_NAMED} more"
        remedy = "is a link down? See `ropewalk lab status --name NAME`"
        if faults:
            given = "; ".join(fault.said() for fault in faults)
            remedy = f"{given}: let it come up again, such as --fault '{faults[0].link} down at 0.5s up at 1.5s'"
        raise LabError(
            f"the job did not finish: {stuck.what}; stalled transfers: {', '.join(said[:MOST_NAMED])}{more}: {remedy}"
        ) from None


def curves_seen(network: LabNetwork, run: LabRun) -> LinkCurves:
    """What a run saw of every link, at the same moments for all of them.

    The last look comes after the end, later on a busy machine; what it counts was sent by the end.
    """
    samples = run.samples
    looked = np.minimum(samples.at_s, run.seconds)
    moments = looked.mean(axis=1)
    sent, waiting = (np.zeros((len(moments), network.fabric.links)) for _ in range(2))
    known = [(at, network.link_of_end[end]) for at, end in enumerate(samples.ends) if end in network.link_of_end]
    for at, link in known:
        sent[:, link] = np.interp(moments, looked[:, at], [row[at] for row in samples.sent_bytes])
        waiting[:, link] = [row[at] for row in samples.waiting_bytes]
    return LinkCurves(moments, sent, waiting)
