"""The time of a schedule as a straight line over the size: rounds that start up, and bytes on the busiest link of each.

Rounds go in lockstep: a round begins when the whole round before it has ended. It costs a start-up, the latency of the
longest of its ways, and the time for which its busiest link (or host, where hosts have limits) is busy. That is exact
for programs whose rounds load the network alike everywhere, and never too short for the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.collectives.cost.form import nearest_fraction
from ropewalk.collectives.cost.mixing import busiest_adds
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import meant
from ropewalk.collectives.program import Pattern
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProgramError


@dataclass(frozen=True)
class LinearTime:
    """`rounds` · α + `latency_s` + size · `seconds_per_byte`."""

    rounds: int
    latency_s: float
    """Latency of the longest path of every round, all rounds together."""
    seconds_per_byte: Fraction

    def fixed_s(self, start_up_s: float) -> float:
        """Seconds that a buffer of any size takes at least."""
        return self.rounds * start_up_s + self.latency_s

    def seconds(self, size_bytes: float, start_up_s: float = 0.0) -> float:
        """Seconds for a buffer when every round starts up in `start_up_s`."""
        if not (size_bytes >= 0 and start_up_s >= 0 and math.isfinite(size_bytes + start_up_s)):
            raise ProgramError(f"{size_bytes:g} bytes at a start-up of {start_up_s:g} s: give 0 or more of both")
        return self.fixed_s(start_up_s) + size_bytes * float(self.seconds_per_byte)


def schedule_cost(schedule: Schedule, network: Network | None = None, mixer: Mixer = FREE) -> LinearTime:
    """Count a schedule round by round; `network` tells the limits of hosts, where they have any.

    What a round reduces is added up behind it, for as long as its busiest rank adds.

    >>> from ropewalk.collectives.mesh import mesh_all_gather
    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> star, everyone = IdealSwitch(4, bandwidth=1e9).build(), np.arange(4)
    >>> routes = shortest(star, *np.nonzero(everyone[:, None] != everyone))
    >>> schedule_cost(Schedule("mesh", mesh_all_gather(4), everyone.astype(np.int32), routes))
    LinearTime(rounds=1, latency_s=0.0, seconds_per_byte=Fraction(3, 4000000000))
    """
    counter = _Counter(schedule, network)
    program = schedule.program
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns)).tolist()
    busy, latency, rounds = Fraction(0), 0.0, 0
    for pattern, times in zip(program.patterns, repeats, strict=True):
        if pattern.sends:
            row = counter.rows(pattern)
            busy += counter.busiest(row, pattern) * times
            latency += float(counter.latency[row].max()) * times
            rounds += times
    added = Fraction(0) if mixer.free else busiest_adds(program) / Fraction(mixer.rate)
    return LinearTime(rounds, latency, busy / program.buffer_chunks + added)


class _Counter:
    """Loads of links and hosts under one pattern at a time."""

    def __init__(self, schedule: Schedule, network: Network | None) -> None:
        self.routes, self.hosts = schedule.routes, schedule.hosts
        self.fabric = schedule.routes.fabric
        self.latency = schedule.routes.latency()
        self.sending, self.receiving = host_limits_of(network) if network is not None else (None, None)

    def rows(self, pattern: Pattern) -> NDArray[np.int64]:
        return self.routes.find(self.hosts[pattern.src], self.hosts[pattern.dst])

    def busiest(self, row: NDArray[np.int64], pattern: Pattern) -> Fraction:
        """Seconds for which the busiest link or host is busy when a chunk is one byte."""
        load = self.routes.link_bytes(row, pattern.chunks.astype(np.float64))
        found = [_slowest(load, self.fabric.bandwidth)]
        nodes = self.fabric.nodes
        for end, limit in ((self.fabric.link_src, self.sending), (self.fabric.link_dst, self.receiving)):
            if limit is not None:
                found.append(_slowest(np.bincount(end, weights=load, minlength=nodes).astype(np.float64), limit))
        return max(found)


def _slowest(load: Floats, speed: Floats) -> Fraction:
    at = int(np.argmax(load / speed))
    return nearest_fraction(float(load[at])) / meant(float(speed[at]))


def host_limits_of(network: Network) -> tuple[Floats | None, Floats | None]:
    """Bytes/s that every node can send and receive over all its links; None where no host has a limit."""
    limited = [arc for arc, links in enumerate(network.links) if not links]
    if not limited:
        return None, None
    sending, receiving = np.full(network.fabric.nodes, np.inf), np.full(network.fabric.nodes, np.inf)
    nodes = network.fabric.nodes
    for arc in limited:
        speed = float(network.bandwidth(network.capacity[arc]))
        leaves = network.tail[arc] < nodes
        # Backwards, what a host's way out carries is what it receives.
        (sending if leaves != network.backwards else receiving)[network.node[network.tail[arc]]] = speed
    return sending, receiving
