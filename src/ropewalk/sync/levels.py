"""How the time of one combination is known below the flow level: with headers, by packets, or whichever is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ropewalk.fabric import Fabric
from ropewalk.progress import Count
from ropewalk.routing import Router, Routes
from ropewalk.sim import simulate_rounds
from ropewalk.sim.level import (
    PacketFacts,
    PacketOptions,
    choose_for_rounds,
    events_of_rounds,
    facts_of,
    rounds_on_the_wire,
    wire_format,
)  # fmt: skip
from ropewalk.sim.level.packet_facts import sample_interval
from ropewalk.sim.packet import PacketSettings, simulate_packets
from ropewalk.task import Lockstep, unroll


@dataclass(frozen=True)
class Timed:
    """A time, and how it came about."""

    seconds: float
    level: str
    classes: int | None = None
    chosen_because: str | None = None
    packet: PacketFacts | None = None


@dataclass(frozen=True)
class Packets:
    """One combination with one transport."""

    fabric: Fabric
    rounds: Lockstep
    way: Router
    router: str
    transport: str
    options: PacketOptions
    seed: int
    symmetry: bool
    most_events: float
    progress: Count | None = None

    @cached_property
    def routes(self) -> Routes:
        """Of all pairs: packets of every host are simulated."""
        return self.way(self.fabric, *self.rounds.all_pairs())

    @cached_property
    def settings(self) -> PacketSettings:
        return self.options.settings(self.transport, self.router, seed=self.seed)

    @cached_property
    def with_headers(self) -> Timed:
        slower = rounds_on_the_wire(self.routes, self.rounds, wire_format(self.settings))
        run = simulate_rounds(self.rounds, slower, symmetry=self.symmetry)
        return Timed(run.makespan, "wire", run.classes)

    @property
    def events(self) -> float:
        """About how many events a packet-level run takes."""
        return events_of_rounds(self.rounds, self.routes, wire_format(self.settings))


def packet_by_packet(asked: Packets) -> Timed:
    """Every packet on every link."""
    every = sample_interval(asked.with_headers.seconds, asked.fabric, asked.settings.wire_bytes)
    settings = asked.options.settings(asked.transport, asked.router, seed=asked.seed, sample_every_s=every)
    trace = simulate_packets(unroll(asked.rounds), asked.routes, settings, progress=asked.progress)
    return Timed(trace.makespan, "packet", None, None, facts_of(trace))


def whichever_is_enough(asked: Packets) -> Timed:
    """Flows with headers where that is known to be enough, otherwise packets; with the reason."""
    choice = choose_for_rounds(
        asked.rounds, asked.routes, asked.settings, wire_format(asked.settings), asked.most_events
    )
    found = packet_by_packet(asked) if choice.level == "packet" else asked.with_headers
    return Timed(found.seconds, found.level, found.classes, choice.why, found.packet)


PACKET_LEVELS: dict[str, Callable[[Packets], Timed]] = {
    "wire": lambda asked: asked.with_headers,
    "packet": packet_by_packet,
    "auto": whichever_is_enough,
}
"""Levels that know packets, by the names people type."""
