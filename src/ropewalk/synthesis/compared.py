"""The schedule beside what others would run on the same fabric: simulated bandwidths, and times by size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.collectives.alternatives import alternatives
from ropewalk.collectives.latency import LinearTime, schedule_cost
from ropewalk.collectives.optimum import Network
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import InputError
from ropewalk.sim import simulate_rounds
from ropewalk.synthesis.answer import Alternative, AtSize
from ropewalk.synthesis.made import Made
from ropewalk.synthesis.question import ROOTED, CollectiveQuestion
from ropewalk.task import lockstep

MOST_SENDS = 2_000_000
"""A program with more sends is counted round by round instead of simulated."""

SAME = 1e-9
"""Times that differ by less than this part are the same."""

Tell = Callable[[str], None]


def simulated_algbw(schedule: Schedule, size_bytes: float) -> float:
    """Bytes/s of one run over the fabric, start-ups aside."""
    rounds = lockstep(schedule.program, size_bytes, 0.0, schedule.hosts)
    return size_bytes / simulate_rounds(rounds, schedule.routes).makespan


@dataclass(frozen=True, eq=False)
class Rivals:
    """What a library would run for this collective and group, each built once, with what it costs by size."""

    question: CollectiveQuestion
    schedules: dict[str, Schedule]
    costs: dict[str, LinearTime]
    left_out: dict[str, str]
    """Why others do not fit."""

    def rows(self, tell: Tell) -> tuple[Alternative, ...]:
        """Every rival on the same fabric: simulated without start-ups, counted with them."""
        question, found = self.question, []
        for name, schedule in self.schedules.items():
            cost = self.costs[name]
            algbw = float(1 / cost.seconds_per_byte)
            if question.host_limits is None and schedule.program.sends <= MOST_SENDS:
                tell(f"simulating {name}")
                algbw = simulated_algbw(schedule, question.size_bytes)
            found.append(Alternative(name, algbw, cost.seconds(question.size_bytes, question.start_up_s)))
        return tuple(found) + tuple(Alternative(name, None, None, why) for name, why in self.left_out.items())

    def by_size(self, best: Made) -> tuple[AtSize, ...]:
        """For every size of the question the fastest of all, the synthesised schedule among them."""
        rows = []
        for size in self.question.sizes:
            seconds = {best.name: best.seconds_for(size)}
            seconds |= {name: cost.seconds(size, self.question.start_up_s) for name, cost in self.costs.items()}
            least = min(seconds.values()) * (1 + SAME)
            # The synthesised schedule stands first, so it wins where others are as fast to rounding.
            name = next(name for name, taken in seconds.items() if taken <= least)
            rows.append(AtSize(size, name, seconds[name], seconds))
        return tuple(rows)


def rivals(question: CollectiveQuestion, network: Network, tell: Tell) -> Rivals:
    """Build everything that the schedule is compared with."""
    root = question.root_host if question.collective in ROOTED else None
    found = Rivals(question, {}, {}, {})
    if not network.equal_shards:
        found.left_out["ring"] = "the alternatives know equal shards only"
        return found
    makers = alternatives(network, question.collective, root=root)
    makers.pop(question.method, None)
    for name, build in makers.items():
        tell(f"comparing with {name}")
        try:
            found.schedules[name] = build()
            found.costs[name] = schedule_cost(found.schedules[name], network)
        except InputError as problem:
            found.schedules.pop(name, None)
            found.left_out[name] = str(problem)
    return found


def simulated(question: CollectiveQuestion, best: Made) -> float | None:
    """Bytes/s of the schedule in the flow simulator.

    None where hosts have limits, which it does not know, or trees have such uneven rates that too many are needed.
    """
    if question.host_limits is not None:
        return None
    segments = max(1, best.segments_for(question.size_bytes))
    try:
        schedule = best.schedule(segments, equal_lanes=True)
    except InputError:
        return None
    if schedule.program.sends > MOST_SENDS:
        return None
    return simulated_algbw(schedule, question.size_bytes)
