"""The flow level in plain Python, written from its definitions: slow, exact, and sharing nothing with the engine.

All arithmetic is done in fractions, so things that happen at the same time happen at exactly the same time. Rates of
all flows are solved again from nothing at every instant at which anything happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

COMPUTE, TRANSFER, MARKER = 0, 1, 2


@dataclass
class Flow:
    """What one flow puts on each link for each unit of its rate, and the rate it never exceeds."""

    uses: dict[int, Fraction]
    cap: Fraction | None = None
    priority: int = 0


def exact(value: float) -> Fraction:
    """The number that was meant, if it has a small denominator: 1/3 for 0.333…, 1/10 for 0.1."""
    return Fraction(float(value)).limit_denominator(10**6)


def max_min(capacity: Sequence[Fraction], flows: Sequence[Flow]) -> list[Fraction]:
    """Progressive filling: all rates grow together; a flow stops when a link of it is full or its cap is reached."""
    rate: list[Fraction | None] = [None] * len(flows)
    while None in rate:
        growing = [number for number, value in enumerate(rate) if value is None]
        level: dict[int, Fraction] = {}
        for link in {link for number in growing for link in flows[number].uses}:
            users = [(flow.uses[link], value) for flow, value in zip(flows, rate, strict=True) if link in flow.uses]
            taken = sum((weight * value for weight, value in users if value is not None), Fraction(0))
            weight = sum((weight for weight, value in users if value is None), Fraction(0))
            level[link] = (capacity[link] - taken) / weight
        caps = [cap for number in growing if (cap := flows[number].cap) is not None]
        stop = min([*level.values(), *caps])
        for number in growing:
            flow = flows[number]
            if flow.cap == stop or any(level[link] == stop for link in flow.uses):
                rate[number] = stop
    return [value for value in rate if value is not None]


def strict_max_min(capacity: Sequence[Fraction], flows: Sequence[Flow]) -> list[Fraction]:
    """The most urgent class fills the network first; each following class fills what is left."""
    room = list(capacity)
    rate = [Fraction(0)] * len(flows)
    for priority in sorted({flow.priority for flow in flows}):
        members = [number for number, flow in enumerate(flows) if flow.priority == priority]
        for number, value in zip(members, max_min(room, [flows[number] for number in members]), strict=True):
            rate[number] = value
            for link, weight in flows[number].uses.items():
                room[link] -= weight * value
    return rate


@dataclass
class World:
    """Everything that changes while a task graph runs."""

    graph: Any
    routes: Any
    now: Fraction = Fraction(0)
    start: dict[int, Fraction] = field(default_factory=dict)
    end: dict[int, Fraction] = field(default_factory=dict)
    ready_at: dict[int, Fraction] = field(default_factory=dict)
    delayed: dict[int, Fraction] = field(default_factory=dict)
    """Transfers before their first byte: when that enters the network."""
    left: dict[int, Fraction] = field(default_factory=dict)
    """Bytes that the live flows have still to send."""
    running: dict[tuple[int, int], int] = field(default_factory=dict)
    """The task that each busy (gpu, stream) runs."""
    waiting: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Read once: what does not change while the graph runs.
        self.amount = [exact(value) for value in self.graph.amount]
        self.capacity = [exact(value) for value in self.routes.fabric.bandwidth]
        self.pairs = list(zip(self.routes.pair_src.tolist(), self.routes.pair_dst.tolist(), strict=True))
        transfers = [task for task in range(self.graph.tasks) if self.graph.kind[task] == TRANSFER]
        self.flow = {task: self.flow_of(task) for task in transfers}

    def waits_for(self, task: int) -> list[int]:
        return [int(d) for d in self.graph.dep[self.graph.dep_start[task] : self.graph.dep_start[task + 1]]]

    def flow_of(self, task: int) -> Flow:
        uses: dict[int, Fraction] = {}
        for share, links in self.paths_of(task):
            for link in links:
                uses[link] = uses.get(link, Fraction(0)) + share
        cap = float(self.graph.rate_cap[task])
        return Flow(uses, None if cap == float("inf") else exact(cap), int(self.graph.priority[task]))

    def paths_of(self, task: int) -> list[tuple[Fraction, list[int]]]:
        routes, ends = self.routes, (int(self.graph.place[task]), int(self.graph.peer[task]))
        pair = self.pairs.index(ends)
        return [
            (
                exact(routes.share[path]),
                [int(x) for x in routes.link[routes.link_start[path] : routes.link_start[path + 1]]],
            )
            for path in range(routes.path_start[pair], routes.path_start[pair + 1])
        ]

    def delay_of(self, task: int) -> Fraction:
        latency = self.routes.fabric.latency
        slowest = max(sum((exact(latency[link]) for link in links), Fraction(0)) for _, links in self.paths_of(task))
        return exact(self.graph.start_up[task]) + slowest

    def rates(self) -> dict[int, Fraction]:
        live = sorted(self.left)
        return dict(zip(live, strict_max_min(self.capacity, [self.flow[task] for task in live]), strict=True))

    def settle(self) -> None:
        """Do all that happens at this instant: finish, become ready, enter the network, and only then pick work."""
        busy = True
        while busy:
            busy = self.finish_what_is_over()
            for task in range(self.graph.tasks):
                if task not in self.ready_at and all(dep in self.end for dep in self.waits_for(task)):
                    self.become_ready(task)
                    busy = True
            if not busy:
                busy = self.pick_work()

    def finish_what_is_over(self) -> bool:
        over = [task for task, moment in self.delayed.items() if moment == self.now]
        for task in over:
            del self.delayed[task]
            self.left[task] = self.amount[task]
        done = [task for task, left in self.left.items() if left == 0]
        for task in done:
            del self.left[task]
            self.end[task] = self.now
        for place, task in list(self.running.items()):
            if self.start[task] + self.amount[task] == self.now:
                del self.running[place]
                self.end[task] = self.now
                done.append(task)
        return bool(over or done)

    def become_ready(self, task: int) -> None:
        self.ready_at[task] = self.now
        kind = int(self.graph.kind[task])
        if kind == COMPUTE:
            place = (int(self.graph.place[task]), int(self.graph.stream[task]))
            self.waiting.setdefault(place, []).append(task)
            return
        self.start[task] = self.now
        if kind == MARKER:
            self.end[task] = self.now
        else:
            self.delayed[task] = self.now + self.delay_of(task)

    def pick_work(self) -> bool:
        """A free stream runs its most urgent ready task, of these the one ready first, of these the lowest number.

        Tasks that take no time come first, on all streams: what they make ready is there before others are picked.
        """
        picked = {
            place: min(tasks, key=lambda task: (int(self.graph.priority[task]), self.ready_at[task], task))
            for place, tasks in self.waiting.items()
            if tasks and place not in self.running
        }
        at_once = {place: task for place, task in picked.items() if self.amount[task] == 0}
        for place, task in (at_once or picked).items():
            self.waiting[place].remove(task)
            self.start[task] = self.now
            self.running[place] = task
        return bool(picked)

    def step(self, watch: Callable[[World, dict[int, Fraction]], None] | None) -> bool:
        """Go to the next instant at which anything happens."""
        rates = self.rates()
        if watch is not None:
            watch(self, rates)
        moments = list(self.delayed.values())
        moments += [self.start[task] + self.amount[task] for task in self.running.values()]
        moments += [self.now + left / rates[task] for task, left in self.left.items() if rates[task] > 0]
        if not moments:
            return False
        then = min(moments)
        for task in self.left:
            self.left[task] -= rates[task] * (then - self.now)
        self.now = then
        return True


def simulate(
    graph: Any, routes: Any, watch: Callable[[World, dict[int, Fraction]], None] | None = None
) -> tuple[list[float], list[float]]:
    """Start and end of every task; `watch` sees the world and the rates between every two instants."""
    world = World(graph, routes)
    world.settle()
    while world.step(watch):
        world.settle()
    assert len(world.end) == graph.tasks, "a task never finished"
    tasks = range(graph.tasks)
    return [float(world.start[task]) for task in tasks], [float(world.end[task]) for task in tasks]
