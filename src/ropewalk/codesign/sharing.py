"""Many jobs on one cluster of patch panels: a partition and a plan for each, and what a second panel saves.

Interface i of every server goes to panel i, so any subset of the servers can be wired among itself: partitions share no
cable and do not slow each other. What jobs do share is the robot: between two jobs on the same servers the panel has to
be patched, which takes minutes. A second panel behind a 1x2 switch at every port is patched while the first job still
runs, and the change takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ropewalk.codesign.question import PlanQuestion
from ropewalk.errors import Findings, InputError
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware.prices import PANEL_PORT, SECOND_PANEL_PORT, PriceList

PANEL_PORTS = 1008
"""Ports of the largest robotic patch panel (Telescent); with one panel for each interface, servers at most."""
PATCH_S = 180.0
"""Seconds until a robot has moved a fibre of a patch panel: minutes, as their makers say."""
FLIP_S = 10e-3
"""Seconds of a 1x2 optical switch: milliseconds."""


@dataclass(frozen=True)
class Partition:
    """A job and the servers it has to itself: `first` and those behind it."""

    first: int
    question: PlanQuestion

    @property
    def servers(self) -> range:
        return range(self.first, self.first + self.question.servers)


def partition(servers: int, jobs: Sequence[PlanQuestion]) -> tuple[Partition, ...]:
    """Cut a cluster into one block of servers for each job, in order."""
    findings = Findings(InputError, f"{len(jobs)} jobs on {servers} servers")
    wanted = sum(job.servers for job in jobs)
    if wanted > servers:
        findings.add(f"they need {wanted} servers: let {wanted - servers} servers' worth of jobs wait")
    if servers > PANEL_PORTS:
        findings.add(f"a panel has {PANEL_PORTS} ports: cut the cluster into clusters of at most {PANEL_PORTS} servers")
    if len({(job.degree, job.bandwidth) for job in jobs}) > 1:
        findings.add("jobs ask for different ports: all servers of a cluster have the same")
    findings.raise_if_any()
    made, first = [], 0
    for job in jobs:
        made.append(Partition(first, job))
        first += job.servers
    return tuple(made)


def whole_wiring(servers: int, parts: Sequence[tuple[Partition, Wiring]]) -> tuple[tuple[int, int, int], ...]:
    """Cables of all partitions with the servers' own numbers; nothing joins two partitions."""
    cables = [(part.first + a, part.first + b, count) for part, wiring in parts for a, b, count in wiring.cables]
    if any(max(a, b) >= servers for a, b, _ in cables):
        raise InputError(f"a partition reaches beyond the {servers} servers of the cluster: cut it anew")
    return tuple(sorted(cables))


@dataclass(frozen=True)
class TurnAround:
    """Jobs one after the other on the same servers."""

    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    cost: float
    """Dollars a server."""

    @property
    def idle_s(self) -> float:
        """Time in which servers waited for fibres."""
        busy = sum(end - start for start, end in zip(self.starts_s, self.ends_s, strict=True))
        return self.ends_s[-1] - busy if self.ends_s else 0.0


def patched_between(runs_s: Sequence[float], prices: PriceList, degree: int, bandwidth: float,
              patch_s: float = PATCH_S) -> TurnAround:  # fmt: skip
    """The panel is patched between jobs, and before the first.

    >>> from ropewalk.hardware.prices import price_list
    >>> patched_between([3600.0, 3600.0], price_list(), 4, 12.5e9).idle_s
    360.0
    """
    return _turn_around(runs_s, lambda ready, before: before + patch_s, degree * PANEL_PORT.cost(prices, bandwidth))


def patched_ahead(runs_s: Sequence[float], prices: PriceList, degree: int, bandwidth: float,
               patch_s: float = PATCH_S, flip_s: float = FLIP_S) -> TurnAround:  # fmt: skip
    """A second panel is patched while the job before runs; a job that is over sooner waits for the rest.

    >>> from ropewalk.hardware.prices import price_list
    >>> round(patched_ahead([3600.0, 3600.0], price_list(), 4, 12.5e9).idle_s, 3)
    180.02
    """

    def start(before_started: float | None, before_ended: float) -> float:
        patched = patch_s if before_started is None else before_started + patch_s
        return max(patched, before_ended) + flip_s

    return _turn_around(runs_s, start, degree * SECOND_PANEL_PORT.cost(prices, bandwidth))


def _turn_around(runs_s: Sequence[float], start: Callable[[float | None, float], float], cost: float) -> TurnAround:
    """`start` says when a job can begin, from when the one before began (None: there was none) and ended."""
    starts: list[float] = []
    ends: list[float] = []
    for run in runs_s:
        starts.append(start(starts[-1] if starts else None, ends[-1] if ends else 0.0))
        ends.append(starts[-1] + run)
    return TurnAround(tuple(starts), tuple(ends), cost)
