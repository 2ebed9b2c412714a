"""Training steps in a row with a queue of gradients before the network, in plain Python and exact fractions.

Written from the definitions and sharing nothing with the kernel: the GPU, the way out and the way in are three machines
that each do one thing at a time, and at every instant at which one of them falls free everything is looked at again.
Unlike the kernel it runs several steps after each other, so that what one step leaves behind would show in the next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import inf


@dataclass
class World:
    """What is trained and how it is handed over; numbers are whole or fractions, `inf` where there is no limit."""

    sizes: list[int]
    layer: list[int]
    backward: list[int]
    forward: list[int]
    bandwidth: Fraction = Fraction(1)
    start_up: Fraction = Fraction(0)
    latency: Fraction = Fraction(0)
    duplex: bool = False
    partition: float = inf
    credit: float = 0
    by_priority: bool = True
    skip: bool = False
    credit_after_pull: bool = False
    barrier: bool = False


@dataclass
class Seen:
    """When every step's forward passes ended, and when every step's tensors were there."""

    forward_end: list[Fraction] = field(default_factory=list)
    available: list[list[Fraction]] = field(default_factory=list)
    pushed: list[tuple[int, int]] = field(default_factory=list)
    """(tensor, piece) in the order on the way out."""


def run_steps(world: World, steps: int) -> Seen:
    """The forward pass of step 0 waits for nothing; every later one for the gradients of the step before."""
    tensors, layers = len(world.sizes), len(world.forward)
    pieces = [_cut(size, world.partition) for size in world.sizes]
    work = [
        (step, way, layer)
        for step in range(steps)
        for way, order in (("forward", range(layers)), ("backward", range(layers - 1, -1, -1)))
        for layer in order
    ]
    seen = Seen()
    missing: dict[tuple[int, int], int] = {}
    arrived: dict[tuple[int, int], Fraction] = {}
    waiting: list[tuple[object, int, int, int]] = []  # key, step, tensor, piece
    outgoing: deque[tuple[int, int, int]] = deque()
    incoming: deque[tuple[int, int, int]] = deque()
    in_flight: list[tuple[int, int, int]] = []
    agenda: list[tuple[Fraction, int, str, tuple[int, ...]]] = []  # of what happens together, the first noted first
    numbers = count()
    busy = {"gpu": False, "out": False, "in": False}
    now, doing = Fraction(0), 0

    def size_of(job: tuple[int, ...]) -> int:
        return pieces[job[1]][job[2]]

    def arrive(job: tuple[int, ...]) -> None:
        step, tensor, _ = job
        missing[step, tensor] -= 1
        if not missing[step, tensor]:
            arrived[step, tensor] = now

    def hand_over() -> bool:
        left = world.credit - sum(size_of(job) for job in in_flight)
        for entry in sorted(waiting):
            job = entry[1:]
            fits = size_of(job) <= left if world.skip and world.credit else left > 0 or not in_flight
            if fits:
                waiting.remove(entry)
                in_flight.append(job)
                outgoing.append(job)
                return True
            if not world.skip or not world.credit:
                return False
        return False

    while True:
        progress = True
        while progress:
            progress = False
            for event in sorted(entry for entry in agenda if entry[0] <= now):
                agenda.remove(event)
                progress = True
                _, _, what, job = event
                if what == "computed":
                    busy["gpu"] = False
                    step, way, layer = work[job[0]]
                    if way == "forward" and layer == layers - 1:
                        seen.forward_end.append(now)
                    for tensor in range(tensors) if way == "backward" else ():
                        if world.layer[tensor] == layer:
                            missing[step, tensor] = len(pieces[tensor])
                            for piece in range(len(pieces[tensor])):
                                place = tensor if world.by_priority else (now, -tensor)
                                waiting.append(((place, piece), step, tensor, piece))
                elif what == "sent":
                    busy["out"] = False
                    agenda.append((now + world.latency, next(numbers), "summed", job))
                elif what == "fetched":
                    busy["in"] = False
                    agenda.append((now + world.latency, next(numbers), "pulled", job))
                elif what == "summed":
                    if world.duplex:
                        incoming.append(job)
                    else:
                        arrive(job)
                    if not (world.duplex and world.credit_after_pull):
                        in_flight.remove(job)
                elif what == "pulled":
                    arrive(job)
                    if world.credit_after_pull:
                        in_flight.remove(job)
            if not busy["gpu"] and doing < len(work):
                step, way, layer = work[doing]
                needed = [t for t in range(tensors) if world.layer[t] == layer or (world.barrier and layer == 0)]
                if way == "backward" or step == 0 or all((step - 1, tensor) in arrived for tensor in needed):
                    seconds = world.forward[layer] if way == "forward" else world.backward[layer]
                    agenda.append((now + seconds, next(numbers), "computed", (doing,)))
                    busy["gpu"], doing, progress = True, doing + 1, True
            while not any(entry[0] <= now for entry in agenda) and hand_over():
                progress = True
            for machine, queue, ends in (("out", outgoing, "sent"), ("in", incoming, "fetched")):
                if queue and not busy[machine]:
                    job = queue.popleft()
                    if machine == "out":
                        seen.pushed.append((job[1], job[2]))
                    agenda.append((now + world.start_up + size_of(job) / world.bandwidth, next(numbers), ends, job))
                    busy[machine] = progress = True
        if not agenda:
            break
        now = min(entry[0] for entry in agenda)
    seen.available = [[arrived[step, tensor] for tensor in range(tensors)] for step in range(steps)]
    return seen


def _cut(size: int, partition: float) -> list[int]:
    pieces = []
    while size > partition:
        pieces.append(int(partition))
        size -= int(partition)
    return [*pieces, size]
