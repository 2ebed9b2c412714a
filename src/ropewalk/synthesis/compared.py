"""The schedule beside what others would run on the same fabric: simulated bandwidths, and times by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.collectives.alternatives import alternatives
from ropewalk.collectives.breadth_first.size import bytes_of, paths_of
from ropewalk.collectives.forest.segments import best_segments
from ropewalk.collectives.in_network import in_network_all_reduce, switch_tree
from ropewalk.collectives.latency import LinearTime, schedule_cost
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.optimum import Network, Optimum
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import InputError, ProgramError
from ropewalk.progress import Say
from ropewalk.sim import simulate_rounds
from ropewalk.synthesis.answer import Alternative, AtSize
from ropewalk.synthesis.made import Made
from ropewalk.synthesis.question import ROOTED, CollectiveQuestion
from ropewalk.task import lockstep
from ropewalk.units import show_size

MOST_SENDS = 2_000_000
"""A program with more sends is counted round by round instead of simulated."""

MOST_PATHS = 300_000
"""A breadth-first schedule over more shortest paths takes minutes to make: nobody asked for it in a comparison."""

SAME = 1e-9
"""Times that differ by less than this part are the same."""


def simulated_algbw(schedule: Schedule, size_bytes: float, mixer: Mixer = FREE) -> float:
    """Bytes/s of one run over the fabric, without start-up latency."""
    rounds = lockstep(schedule.program, size_bytes, 0.0, schedule.hosts, mixer)
    return size_bytes / simulate_rounds(rounds, schedule.routes).makespan


@dataclass(frozen=True, eq=False)
class Rivals:
    """What a library would run for this collective and group, each built once, with what it costs by size."""

    question: CollectiveQuestion
    schedules: dict[str, Schedule]
    costs: dict[str, LinearTime]
    left_out: dict[str, str]
    """Why others do not fit."""

    def rows(self, tell: Say) -> tuple[Alternative, ...]:
        """Every rival on the same fabric: simulated without start-up latency, counted with them."""
        question, found = self.question, []
        for name, schedule in self.schedules.items():
            cost = self.costs[name]
            algbw = float(1 / cost.seconds_per_byte)
            if question.host_limits is None and schedule.program.sends <= MOST_SENDS:
                tell(f"simulating {name}")
                algbw = simulated_algbw(schedule, question.size_bytes, question.mixer_of_ranks)
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


def rivals(question: CollectiveQuestion, network: Network, tell: Say) -> Rivals:
    """Build everything that the schedule is compared with."""
    root = question.root_host if question.collective in ROOTED else None
    found = Rivals(question, {}, {}, {})
    if not network.equal_shards:
        found.left_out["ring"] = "alternatives support equal shards only"
        return found
    makers = alternatives(network, question.collective, root=root)
    makers.pop(question.method, None)
    for name, build in makers.items():
        if name == "breadth-first" and (paths := paths_of(network)) > MOST_PATHS:
            found.left_out[name] = (
                f"it would write down {paths:,.0f} paths, which takes minutes and about "
                f"{show_size(bytes_of(network))}: ask for it with --method breadth-first"
            )
            continue
        tell(f"comparing with {name}")
        try:
            found.schedules[name] = build()
            found.costs[name] = schedule_cost(found.schedules[name], network, question.mixer_of_ranks)
        except InputError as problem:
            found.schedules.pop(name, None)
            found.left_out[name] = str(problem)
    return found


def tree_of_switches(question: CollectiveQuestion, network: Network, optimum: Optimum) -> float | None:
    """Bytes/s of an all-reduce over one tree of switches that copy and add up; None for others, or without a tree."""
    if question.collective != "allreduce" or question.host_limits is not None:
        return None
    members = np.asarray(network.members, np.int64)
    try:
        depth = switch_tree(question.fabric, members).rounds
    except ProgramError:
        return None
    segments = best_segments(question.size_bytes, optimum.algbw, depth, question.start_up_s)
    schedule = in_network_all_reduce(question.fabric, members, segments)
    if schedule.program.sends > MOST_SENDS:
        return None
    return simulated_algbw(schedule, question.size_bytes, question.mixer)


def simulated(question: CollectiveQuestion, best: Made) -> float | None:
    """Bytes/s of the schedule in the flow simulator.

    None where hosts have limits, which it does not know, or trees have such uneven rates that too many are needed.
    """
    if question.host_limits is not None:
        return None
    segments = max(1, best.segments_for(question.size_bytes))
    if best.least_sends * segments > MOST_SENDS:  # nobody needs to write them down to know that they are too many
        return None
    try:
        schedule = best.schedule(segments, equal_lanes=True)
    except InputError:
        return None
    if schedule.program.sends > MOST_SENDS:
        return None
    return simulated_algbw(schedule, question.size_bytes, question.mixer)
