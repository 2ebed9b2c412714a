"""Run a task graph at the level that was asked for, and say what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ropewalk.errors import Findings, InputError
from ropewalk.progress import Count
from ropewalk.routing import Routes
from ropewalk.sim.level.choose import MOST_EVENTS, choose_for_run, events_of_run
from ropewalk.sim.level.options import PacketOptions
from ropewalk.sim.level.packet_facts import PacketFacts, facts_of, sample_interval
from ropewalk.sim.level.seen_as_trace import seen_as_trace
from ropewalk.sim.level.wire import WireFormat, on_the_wire, wire_format
from ropewalk.sim.packet import simulate_packets
from ropewalk.sim.simulate import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskGraph, TaskKind


@dataclass(frozen=True)
class LevelUse:
    """How finely to simulate, and with whose packets."""

    level: str = "flow"
    transport: str = "rdma"
    options: PacketOptions = field(default_factory=PacketOptions)
    most_events: float = MOST_EVENTS

    def check(self) -> None:
        """Refuse what cannot be simulated, all of it at once."""
        findings = Findings(InputError, "network")
        if self.level not in LEVELS:
            findings.add(f"unknown level {self.level!r}: use one of {', '.join(LEVELS)}")
        if self.knows_packets:
            self.options.check((self.transport,), findings)
        findings.raise_if_any()

    @property
    def knows_packets(self) -> bool:
        return self.level != "flow"

    def payload_share(self) -> float:
        """Payload in a byte of a data packet."""
        return wire_format(self.options.settings(self.transport, "default", seed=0)).payload_share


@dataclass(frozen=True, eq=False)
class LevelRun:
    """A run and the level it was made at."""

    trace: Trace
    level: str
    transport: str | None = None
    why: str | None = None
    """Where the level was chosen: why."""
    packet: PacketFacts | None = None

    def sentences(self) -> list[str]:
        """What a reader should know about the level."""
        said = [] if self.why is None else [f"Level {self.level} with {self.transport}: {self.why}."]
        if self.packet is not None:
            spread = self.packet.pauses_over_nodes()
            kinds = [
                f"{number:,} by {kind} ({spread[kind]})"
                for kind, number in self.packet.pauses_by_kind().items()
                if number
            ]
            paused = f"pause frames received: {', '.join(kinds)}" if kinds else "no pauses"
            said.append(
                f"At packet level with {self.transport}: {paused}; {self.packet.marks:,} packets marked, "
                f"{self.packet.drops:,} dropped, {self.packet.timeouts:,} timeouts."
            )
        return said

    def as_json(self) -> dict[str, object]:
        return {
            "level": self.level,
            "transport": self.transport,
            "chosen_because": self.why,
            "packet": None if self.packet is None else self.packet.as_json(),
        }


@dataclass(frozen=True)
class RoutedTasks:
    """Tasks on routes, and how to run them."""

    graph: TaskGraph
    routes: Routes
    routing: str
    use: LevelUse
    seed: int
    symmetry: bool
    record_rates: bool
    progress: Count | None

    def packets(self) -> WireFormat:
        return wire_format(self.use.options.settings(self.use.transport, self.routing, seed=self.seed))


def run_at_level(
    graph: TaskGraph,
    routes: Routes,
    use: LevelUse,
    *,
    routing: str = "default",
    seed: int = 0,
    symmetry: bool = True,
    record_rates: bool = False,
    progress: Count | None = None,
) -> LevelRun:
    """One run at the level asked for; `auto` first runs flows with headers and stays with them where they are enough.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 1e6)
    >>> routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    >>> run_at_level(sketch.graph(), routes, LevelUse("auto")).level
    'wire'
    """
    use.check()
    return LEVELS[use.level](RoutedTasks(graph, routes, routing, use, seed, symmetry, record_rates, progress))


def _as_flows(work: RoutedTasks) -> LevelRun:
    trace = simulate(
        work.graph, work.routes, symmetry=work.symmetry, record_rates=work.record_rates, progress=work.progress
    )
    return LevelRun(trace, "flow")


def _with_headers(work: RoutedTasks) -> LevelRun:
    form = work.packets()
    slower = on_the_wire(_as_flows(replace(work, record_rates=False)).trace, form)
    capped = replace(work.graph, rate_cap=work.graph.rate_cap * form.payload_share)  # headers count towards a cap
    trace = simulate(capped, slower, symmetry=work.symmetry, record_rates=work.record_rates, progress=work.progress)
    # Whoever reads the trace wants to see tasks and links as they are.
    return LevelRun(replace(trace, graph=work.graph, routes=work.routes), "wire", work.use.transport)


def _packet_by_packet(work: RoutedTasks) -> LevelRun:
    flows = _with_headers(replace(work, record_rates=False)).trace
    events, most = events_of_run(flows, work.packets()), work.use.most_events
    if events > most:
        raise InputError(
            f"packets of {work.packets().payload_bytes} bytes would take about {events:.1e} events, more than "
            f"{most:.1e}: use a smaller model, fewer GPUs or a larger --payload, raise --most-events, "
            "or let --level auto decide"
        )
    return _packets_after(work, flows)


def _packets_after(work: RoutedTasks, flows: Trace) -> LevelRun:
    settings = work.use.options.settings(work.use.transport, work.routing, seed=work.seed)
    every = sample_interval(flows.makespan, work.routes.fabric, settings.wire_bytes)
    settings = replace(settings, sample_every_s=every)
    run = simulate_packets(work.graph, work.routes, settings, progress=work.progress)
    return LevelRun(seen_as_trace(run), "packet", work.use.transport, None, facts_of(run, _most_received(work.graph)))


def _whichever_is_enough(work: RoutedTasks) -> LevelRun:
    found = _with_headers(work)
    settings = work.use.options.settings(work.use.transport, work.routing, seed=work.seed)
    choice = choose_for_run(found.trace, settings, work.packets(), work.use.most_events)
    if choice.level == "packet":
        found = _packets_after(work, found.trace)
    return replace(found, why=choice.why)


def _most_received(graph: TaskGraph) -> int:
    """The host that the most bytes go to."""
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if not len(transfer):
        return 0
    return int(np.argmax(np.bincount(graph.peer[transfer], graph.amount[transfer])))


LEVELS: dict[str, Callable[[RoutedTasks], LevelRun]] = {
    "flow": _as_flows,
    "wire": _with_headers,
    "packet": _packet_by_packet,
    "auto": _whichever_is_enough,
}
"""Levels of a task graph, by the names people type."""
