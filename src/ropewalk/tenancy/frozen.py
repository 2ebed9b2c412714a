"""The same placements at the same times under another network: what the network alone does to running times.

In a replay a slower network makes jobs leave later, others start later and elsewhere, and the queue amplifies all of
it. Here everybody stands where and when one replay says, and only the pace of each job under the network is looked at,
with the neighbours that it had there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.timeline import Timeline


def frozen_slowdowns(plant: Plant, jobs: Sequence[Job], run: Timeline, routing: str, seed: int) -> list[float]:
    """Of every job of a replay, by how much it is slowed down where it was: iterations over quiet ones, mean over time.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.replay import Rules, replay
    >>> from ropewalk.tenancy.work import Iteration
    >>> where, alone = plant("leaf-spine:2x4x4", gpus_per_server=4), [Job("a", 8, 0.0, 10, Iteration(1.0))]
    >>> frozen_slowdowns(where, alone, replay(where, alone, allocate="none", rules=Rules("ideal")), "ecmp", 0)
    [1.0]
    """
    network = SharedNetwork(plant, routing, seed)
    number_of = {job.name: number for number, job in enumerate(jobs)}
    watch = _Watch(network)
    events = sorted(
        (when, starts, number_of[job.name], at)
        for job in run.jobs
        for at, stretch in enumerate(job.stretches)
        for when, starts in ((stretch.start_s, True), (stretch.end_s, False))
    )
    places = {job.name: job.stretches for job in run.jobs}
    at_s = None
    for when, starts, number, which in events:
        if at_s is not None and when != at_s:
            watch.settle(at_s)
        at_s = when
        job = jobs[number]
        if starts:
            network.start(job.name, number, network.footprint(job.work, places[job.name][which].allocation))
        else:
            watch.stop(job.name, when)
    return [watch.slowdown(job.name) for job in run.jobs]


class _Watch:
    """Writes down how long each job had which pace."""

    def __init__(self, network: SharedNetwork) -> None:
        self.network = network
        self._since: dict[str, tuple[float, float]] = {}
        """(moment, slowdown) of jobs that run."""
        self._spent: dict[str, list[float]] = {}
        """[seconds, seconds times slowdown]"""

    def settle(self, now_s: float) -> None:
        for name in self.network.settle():
            self._write(name, now_s)
            self._since[name] = now_s, self.network.pace(name).iteration_s / self._quiet_s(name)

    def stop(self, name: str, now_s: float) -> None:
        self._write(name, now_s)
        self._since.pop(name, None)
        self.network.stop(name)

    def slowdown(self, name: str) -> float:
        seconds, weighted = self._spent.get(name, [0.0, 0.0])
        return weighted / seconds if seconds else 1.0

    def _quiet_s(self, name: str) -> float:
        return self.network.running(name).quiet_iteration_s

    def _write(self, name: str, now_s: float) -> None:
        if name in self._since:
            begin_s, slow = self._since[name]
            spent = self._spent.setdefault(name, [0.0, 0.0])
            spent[0] += now_s - begin_s
            spent[1] += (now_s - begin_s) * slow
