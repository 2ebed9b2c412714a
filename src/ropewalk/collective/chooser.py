"""Which schedule for which size: times are straight lines over the size, so the best one changes at a few sizes only.

Small buffers want few rounds, large ones want every link busy. A pipeline whose number of segments should grow with the
size is offered as several candidates with fixed numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ropewalk.collective.latency.cost import LinearTime, schedule_cost
from ropewalk.collective.optimum.network import Network
from ropewalk.collective.schedule import Schedule
from ropewalk.errors import ProgramError


@dataclass(frozen=True)
class Choice:
    """The fastest schedule for one size."""

    name: str
    seconds: float
    schedule: Schedule


@dataclass(frozen=True)
class Stretch:
    """Sizes from `from_bytes` on, up to the next stretch, for which one candidate is the fastest."""

    from_bytes: float
    name: str


@dataclass(frozen=True, eq=False)
class Chooser:
    """Candidates with what they cost; each is built once, when its time is first needed.

    >>> from ropewalk.collective.alternatives import alternatives
    >>> from ropewalk.collective.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> network = network_of(Torus((4, 4), bandwidth=10e9).build())
    >>> chooser = Chooser(alternatives(network, "allgather"), start_up_s=10e-6)
    >>> chooser.choose(1e3).name, chooser.choose(1e9).name
    ('mesh', 'hips')
    """

    candidates: Mapping[str, Callable[[], Schedule]]
    start_up_s: float
    network: Network | None = None
    """Tells the limits of hosts, where they have any."""

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ProgramError("there is nothing to choose from: give at least one schedule")
        if not (math.isfinite(self.start_up_s) and self.start_up_s >= 0):
            raise ProgramError(f"a start-up of {self.start_up_s:g} s: give 0 s or more")

    @cached_property
    def schedules(self) -> dict[str, Schedule]:
        return {name: build() for name, build in self.candidates.items()}

    @cached_property
    def costs(self) -> dict[str, LinearTime]:
        """The line of every candidate."""
        return {name: schedule_cost(schedule, self.network) for name, schedule in self.schedules.items()}

    def seconds(self, size_bytes: float) -> dict[str, float]:
        """The time of every candidate."""
        return {name: cost.seconds(size_bytes, self.start_up_s) for name, cost in self.costs.items()}

    def choose(self, size_bytes: float) -> Choice:
        """The fastest candidate; among equals the one with fewer rounds, then the first."""
        times = self.seconds(size_bytes)
        name = min(times, key=lambda each: (times[each], self.costs[each].rounds))
        return Choice(name, times[name], self.schedules[name])

    def table(self, sizes: Sequence[float]) -> list[tuple[float, str, float]]:
        """(size, name, seconds) of the fastest candidate for each of some sizes."""
        chosen = [(size, self.choose(size)) for size in sizes]
        return [(size, choice.name, choice.seconds) for size, choice in chosen]

    def stretches(self) -> list[Stretch]:
        """Where the choice changes: the lower envelope of all lines, from size 0 on."""
        here, now = 0.0, self.choose(0.0).name
        found = [Stretch(0.0, now)]
        while True:
            crossing = self._next_crossing(now)
            if crossing is None:
                return found
            here, now = max(here, crossing[0]), crossing[1]
            if found[-1].from_bytes == here:
                found.pop()
            found.append(Stretch(here, now))

    def _next_crossing(self, now: str) -> tuple[float, str] | None:
        """The size at which a flatter line first meets this one, and the flattest line that does so there."""
        line = self.costs[now]
        meetings = []
        for name, other in self.costs.items():
            gain = line.seconds_per_byte - other.seconds_per_byte
            if gain > 0:
                ahead = other.fixed_s(self.start_up_s) - line.fixed_s(self.start_up_s)
                meetings.append((ahead / float(gain), other.seconds_per_byte, name))
        if not meetings:
            return None
        size, _, name = min(meetings)
        return size, name


def choose(
    candidates: Mapping[str, Callable[[], Schedule]],
    size_bytes: float,
    start_up_s: float,
    network: Network | None = None,
) -> Choice:
    """The fastest of some schedules for one size."""
    return Chooser(candidates, start_up_s, network).choose(size_bytes)
