"""A machine that runs thread blocks on buffers of symbols and proves that every order of events ends the same.

Agents (thread blocks, and the adapters that copy on behalf of some of them) run lists of instructions over one memory
of cells, a cell for each chunk of each buffer. They meet in counters, queues and barriers only. Every agent keeps a
vector clock of what it knows to be over; two accesses to a cell of which one writes must be ordered by these clocks,
or the run ends in a race. A counter has one agent that posts and one that takes, a queue one at each end. Under these
conditions what an agent reads does not depend on speed, so one run stands for all.

The host of a rank launches it: the memory of a rank may be touched by others only once they have heard from it, and
all touches must be known to the rank's own thread blocks when they end, because the next launch reuses the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ropewalk.arrays import Ints32
from ropewalk.errors import ProofError
from ropewalk.export.threadblocks.memory import CellMemory
from ropewalk.export.threadblocks.values import Value, added

Act = Callable[["Machine", "Agent"], bool]
"""An instruction: does its work and says True, or says False while it has to wait."""


@dataclass
class Agent:
    """Something that runs a list of instructions."""

    name: str
    number: int
    rank: int
    owned: bool
    """It starts and ends with the launch of its rank; adapters do not."""
    acts: list[tuple[str, Act]] = field(default_factory=list)
    """(where it is in the file, what it does)."""
    clock: Ints32 = field(default_factory=lambda: np.zeros(0, np.int32))
    at: int = 0
    held: list[Value] = field(default_factory=list)
    """The values between loading and storing."""

    def does(self, where: str, *acts: Act) -> None:
        self.acts.extend((where, act) for act in acts)

    @property
    def where(self) -> str:
        return f"{self.name}, {self.acts[self.at][0]}" if self.at < len(self.acts) else f"{self.name}, at its end"


@dataclass
class _Counter:
    name: str
    tokens: deque[Ints32 | None]
    initial: int
    posters: set[int] = field(default_factory=set)
    takers: set[int] = field(default_factory=set)


@dataclass
class _Queue:
    name: str
    slots: int
    items: deque[tuple[list[Value], Ints32]] = field(default_factory=deque)
    pushers: set[int] = field(default_factory=set)
    poppers: set[int] = field(default_factory=set)
    popped: int = 0
    pushed: int = 0


@dataclass
class _Barrier:
    parties: int
    members: set[int] = field(default_factory=set)
    arrived: dict[int, int] = field(default_factory=dict)
    """How many times each agent has arrived."""
    clocks: dict[int, Ints32] = field(default_factory=dict)
    """What the parties of each meeting know together."""


class Machine:
    """Agents, memory and the places where agents meet."""

    def __init__(self, subject: str, ranks: int, memory: CellMemory) -> None:
        self.subject = subject
        self.ranks = ranks
        self.memory = memory
        self.agents: list[Agent] = []
        self.counters: dict[object, _Counter] = {}
        self.queues: dict[object, _Queue] = {}
        self.barriers: dict[object, _Barrier] = {}

    def agent(self, name: str, rank: int, owned: bool = True) -> Agent:
        """A new agent; numbers below `ranks` are the hosts."""
        self.agents.append(Agent(name, self.ranks + len(self.agents), rank, owned))
        return self.agents[-1]

    def counter(self, key: object, name: str, initial: int = 0) -> None:
        self.counters[key] = _Counter(name, deque([None] * initial), initial)

    def queue(self, key: object, name: str, slots: int) -> None:
        """A first-in-first-out queue; with 0 slots, a sender goes on only when its receiver has taken the values."""
        self.queues[key] = _Queue(name, slots)

    def run(self) -> None:
        """Run everything to its end; raises `ProofError` for a race, a deadlock or something left over."""
        size = self.ranks + len(self.agents)
        for agent in self.agents:
            agent.clock = np.zeros(size, np.int32)
            agent.clock[agent.number] = 1
            if agent.owned:
                agent.clock[agent.rank] = 1
        moved = True
        while moved:
            moved = False
            for agent in self.agents:
                while agent.at < len(agent.acts) and agent.acts[agent.at][1](self, agent):
                    agent.at += 1
                    moved = True
        self._refuse_deadlock()
        self._refuse_leftovers()
        known = [np.zeros(size, np.int32) for _ in range(self.ranks)]
        for rank in range(self.ranks):
            known[rank][rank] = 1
        for agent in self.agents:
            if agent.owned:
                np.maximum(known[agent.rank], agent.clock, out=known[agent.rank])
        self.memory.refuse_unfinished(known, self)

    def name_of(self, agent: int) -> str:
        return f"the launch of rank {agent}" if agent < self.ranks else self.agents[agent - self.ranks].name

    def refuse(self, message: str) -> ProofError:
        return ProofError(f"{self.subject}: {message}")

    def _refuse_deadlock(self) -> None:
        stuck = [agent.where for agent in self.agents if agent.at < len(agent.acts)]
        if stuck:
            rest = f", and {len(stuck) - 3} more" if len(stuck) > 3 else ""
            raise self.refuse(f"deadlock: {'; '.join(stuck[:3])}{rest} wait forever")

    def _refuse_leftovers(self) -> None:
        for counter in self.counters.values():
            if len(counter.tokens) != counter.initial:
                raise self.refuse(
                    f"{counter.name} ends at {len(counter.tokens)} instead of {counter.initial}: "
                    "the next launch would begin with signals of this one"
                )
        for queue in self.queues.values():
            if queue.items:
                raise self.refuse(f"{queue.name} ends with {len(queue.items)} unreceived sends")
        for key, barrier in self.barriers.items():
            if len(barrier.members) != barrier.parties:
                raise self.refuse(
                    f"barrier {key} is for {barrier.parties} thread blocks, but {len(barrier.members)} use it"
                )


def load(cells: Sequence[int]) -> Act:
    """Take the values of cells in hand."""

    def act(machine: Machine, agent: Agent) -> bool:
        agent.held = [machine.memory.read(cell, agent, machine) for cell in cells]
        return True

    return act


def add(cells: Sequence[int]) -> Act:
    """Add the values of cells to those in hand."""

    def act(machine: Machine, agent: Agent) -> bool:
        values = [machine.memory.read(cell, agent, machine) for cell in cells]
        agent.held = [added(one, other) for one, other in zip(agent.held, values, strict=True)]
        return True

    return act


def store(cells: Sequence[int]) -> Act:
    """Write the values in hand to cells."""

    def act(machine: Machine, agent: Agent) -> bool:
        for cell, value in zip(cells, agent.held, strict=True):
            machine.memory.write(cell, value, agent, machine)
        return True

    return act


def post(key: object, launch_only: bool = False) -> Act:
    """Raise a counter; whoever takes it knows all this agent knows, or only that its rank has been launched."""

    def act(machine: Machine, agent: Agent) -> bool:
        counter = machine.counters[key]
        _one_of(machine, counter.posters, agent, f"{counter.name} is raised by")
        token = agent.clock.copy()
        if launch_only:
            token[:] = 0
            token[agent.rank] = 1
        counter.tokens.append(token)
        agent.clock[agent.number] += 1
        return True

    return act


def take(key: object, launch_only: bool = False) -> Act:
    """Wait for a counter and lower it, to know what its poster knew, or only that ranks have been launched."""

    def act(machine: Machine, agent: Agent) -> bool:
        counter = machine.counters[key]
        _one_of(machine, counter.takers, agent, f"{counter.name} is awaited by")
        if not counter.tokens:
            return False
        token = counter.tokens.popleft()
        if token is not None:
            heard = slice(machine.ranks if launch_only else None)
            np.maximum(agent.clock[heard], token[heard], out=agent.clock[heard])
        return True

    return act


def push(key: object) -> Act:
    """Send the values in hand; waits for room."""
    ticket: list[int] = []

    def act(machine: Machine, agent: Agent) -> bool:
        queue = machine.queues[key]
        _one_of(machine, queue.pushers, agent, f"{queue.name} is fed by")
        if not ticket:
            if queue.slots and len(queue.items) >= queue.slots:
                return False
            queue.items.append((agent.held, agent.clock.copy()))
            queue.pushed += 1
            ticket.append(queue.pushed)
            agent.clock[agent.number] += 1
        return bool(queue.slots) or queue.popped >= ticket[0]

    return act


def pop(key: object, count: int) -> Act:
    """Receive values into the hand; waits for them."""

    def act(machine: Machine, agent: Agent) -> bool:
        queue = machine.queues[key]
        _one_of(machine, queue.poppers, agent, f"{queue.name} is emptied by")
        if not queue.items:
            return False
        values, clock = queue.items.popleft()
        queue.popped += 1
        if len(values) != count:
            raise machine.refuse(f"{agent.where} receives {len(values)} chunks where it expects {count}")
        agent.held = values
        np.maximum(agent.clock, clock, out=agent.clock)
        return True

    return act


def meet(key: object, parties: int) -> Act:
    """Wait until as many agents as a barrier has parties have come to it."""
    ticket: list[int] = []

    def act(machine: Machine, agent: Agent) -> bool:
        barrier = machine.barriers.setdefault(key, _Barrier(parties))
        if barrier.parties != parties:
            raise machine.refuse(f"{agent.where}: barrier {key} is for {barrier.parties} elsewhere, {parties} here")
        barrier.members.add(agent.number)
        if not ticket:
            meeting = barrier.arrived.get(agent.number, 0)
            barrier.arrived[agent.number] = meeting + 1
            before = barrier.clocks.get(meeting)
            barrier.clocks[meeting] = agent.clock.copy() if before is None else np.maximum(before, agent.clock)
            ticket.append(meeting)
        if sum(times > ticket[0] for times in barrier.arrived.values()) < parties:
            return False
        np.maximum(agent.clock, barrier.clocks[ticket[0]], out=agent.clock)
        agent.clock[agent.number] += 1
        return True

    return act


def _one_of(machine: Machine, known: set[int], agent: Agent, verb: str) -> None:
    known.add(agent.number)
    if len(known) > 1:
        names = " and ".join(sorted(machine.name_of(number) for number in known))
        raise machine.refuse(f"{verb} {names}: their order is undefined")
