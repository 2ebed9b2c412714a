"""A collective written out once for all groups that sit alike in servers: tasks between places in the group.

Task 0 is the marker at which every member has arrived, the last task the marker that waiters wait for. Two ways to
write a program out:

- `fluid`: for every pair all that it exchanges over the whole program as one transfer, after the time that all rounds
  take on top of their bytes. Few tasks; right where rounds are pipelined so finely that all links are busy all the
  time. Bytes of different phases of a hierarchy overlap then, and a chain has no time to fill. A round that is repeated
  counts as crossing between servers in the part of its repetitions in which a chunk crosses. Ranks add up what they
  reduce meanwhile: what a rank receives arrives no faster than its adder takes it, and collectives that are under way
  together take turns at it.
- `rounds`: every send of every round, in lockstep. Many tasks; phases come one after the other. What is added up is a
  task of the rank that receives it, one after the other.

They agree where every round keeps the same links busy from its first to its last byte: rings on a quiet fabric inside
one server or with one rank a server, meshes, and halving-doubling on one switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives import Program
from ropewalk.collectives.mixer import Mixer
from ropewalk.collectives.over_servers import Servers
from ropewalk.collectives.schedule import Schedule
from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.routing.routes import single_paths
from ropewalk.task.lockstep import lockstep, write_out
from ropewalk.task.transport import Transport


@dataclass(frozen=True, eq=False)
class Template:
    """Columns by task; dependencies are tasks of the template, and task 0 has none of them."""

    src: NDArray[np.int64]
    """Place in the group; -1 for a marker, and for an add, which is done at `dst`."""
    dst: NDArray[np.int64]
    wire: NDArray[np.float64]
    """Bytes on the wire for each byte that the collective is of; seconds of an add for each of them."""
    start_up: NDArray[np.float64]
    cap: NDArray[np.float64]
    deps: NDArray[np.int64]
    dep: NDArray[np.int64]
    route: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """The row of `paths` that a transfer takes; -1, as everywhere unless given, where the network routes it."""
    paths: Routes | None = None
    """Paths of its own, between the hosts of the group that it was made for."""
    rounds_inside: int = 0
    """Rounds that a transfer of the template stands for, within servers and across: latencies it leaves out."""
    rounds_across: int = 0
    launch_s: float = 0.0
    """Part of the start-up that operations launched together pay once."""

    def __post_init__(self) -> None:
        if len(self.route) == 0:
            object.__setattr__(self, "route", np.full(len(self.src), -1))

    @property
    def tasks(self) -> int:
        return len(self.src)

    @property
    def adds(self) -> NDArray[np.int64]:
        """Tasks that add up."""
        return np.flatnonzero((self.src < 0) & (self.dst >= 0))

    def without_adds(self) -> Template:
        """The same where nothing else needs the adders meanwhile; only of a template in which rounds flow together."""
        adds = self.adds
        if not len(adds):
            return self
        between = self.tasks - 2 - len(adds)
        return replace(
            self,
            src=np.delete(self.src, adds),
            dst=np.delete(self.dst, adds),
            wire=np.delete(self.wire, adds),
            start_up=np.delete(self.start_up, adds),
            cap=np.delete(self.cap, adds),
            route=np.delete(self.route, adds),
            deps=np.concatenate([[0], np.ones(between, np.int64), [between]]),
            dep=np.concatenate([np.zeros(between, np.int64), np.arange(1, between + 1)]),
        )


Writer = Callable[[Program, Servers, Transport], Template]
ROUNDING = 1e-9
ADDED_PIECES = 8
"""In which a rank adds what a collective brings, where rounds flow together: others get a turn behind each."""

MEETING = Template(
    np.array([-1]),
    np.array([-1]),
    np.zeros(1),
    np.zeros(1),
    np.array([np.inf]),
    np.zeros(1, np.int64),
    np.zeros(0, int),
)
"""A collective that moves nothing: a barrier, or a group of one rank."""


def fluid(program: Program, servers: Servers, transport: Transport) -> Template:
    """All traffic of a program at once, one transfer for each pair."""
    server = np.repeat(np.arange(len(servers)), servers)
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns))
    # What goes round a ring that leaves its server in one hop of eight pays for crossing in one round of eight.
    crossing = np.array([float((server[p.src] != server[p.dst]).mean()) for p in program.patterns])
    across = int(np.ceil(repeats * crossing - ROUNDING).sum())
    inside = len(program.rounds) - across

    key = np.concatenate([p.src.astype(np.int64) * program.ranks + p.dst for p in program.patterns])
    chunks = np.concatenate([p.chunks * repeat for p, repeat in zip(program.patterns, repeats, strict=True)])
    pair, number = np.unique(key, return_inverse=True)
    carried = np.bincount(number, weights=chunks) / program.buffer_chunks
    src, dst = np.divmod(pair, program.ranks)
    poured = at_once(src, dst, carried, servers, transport, inside, across)
    if transport.mixer.free:
        return poured
    adds = np.concatenate([p.reduces for p in program.patterns])
    reduced = np.bincount(number, weights=chunks * adds) / program.buffer_chunks
    return _no_faster_than_added(poured, reduced, transport.mixer)


def _no_faster_than_added(poured: Template, reduced: NDArray[np.float64], mixer: Mixer) -> Template:
    """What brings something to add takes at least as long as its receiver adds all that is brought to it.

    So long the adder of the receiver has no time for other collectives: adds stand beside what it receives.
    """
    dst, wire = poured.dst[1:-1], poured.wire[1:-1]
    added_s = mixer.seconds(1.0) * np.bincount(dst, weights=reduced).astype(np.float64)
    mixed = wire / np.where(reduced > 0, mixer.payload * added_s[dst], 1.0)
    cap = poured.cap.copy()
    cap[1:-1] = np.where(reduced > 0, np.minimum(cap[1:-1], mixed), cap[1:-1])
    return _with_adds(replace(poured, cap=cap), added_s)


def _with_adds(poured: Template, added_s: NDArray[np.float64]) -> Template:
    """The transfers of a template, and beside them what every place adds: piece after piece, so that others get turns.

    Transfers wait for the arrival alone, and so does the first piece of each place.
    """
    adders = np.flatnonzero(added_s)
    sends, pieces = poured.tasks - 2, ADDED_PIECES * len(adders)
    piece = np.arange(1 + sends, 1 + sends + pieces)
    before = np.where(np.arange(pieces) % ADDED_PIECES == 0, 0, piece - 1)
    waited = np.concatenate([np.arange(1, 1 + sends), piece[ADDED_PIECES - 1 :: ADDED_PIECES]])
    each = np.repeat(adders, ADDED_PIECES)
    return replace(
        poured,
        src=_beside(poured.src, np.full(pieces, -1)),
        dst=_beside(poured.dst, each),
        wire=_beside(poured.wire, added_s[each] / ADDED_PIECES),
        start_up=_beside(poured.start_up, np.zeros(pieces)),
        cap=_beside(poured.cap, np.full(pieces, np.inf)),
        deps=np.concatenate([[0], np.ones(sends + pieces, np.int64), [len(waited)]]),
        dep=np.concatenate([np.zeros(sends, np.int64), before, waited]),
        route=_beside(poured.route, np.full(pieces, -1)),
    )


def _beside(column: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """Further tasks between the two markers."""
    return np.concatenate([column[:-1], more, column[-1:]]).astype(column.dtype)


def at_once(
    src: NDArray[np.int64], dst: NDArray[np.int64], carried: NDArray[np.float64], servers: Servers,
    transport: Transport, rounds_inside: int = 0, rounds_across: int = 0,
) -> Template:  # fmt: skip
    """Transfers between places of the group that start together, each with its bytes for a byte of the collective."""
    waiting = transport.start_up_s + rounds_inside * transport.round_inside_s
    waiting += rounds_across * transport.round_across_s
    return _between_markers(
        src, dst, carried, np.full(len(src), waiting), np.ones(len(src), np.int64), np.zeros(len(src), np.int64),
        np.arange(1, len(src) + 1), np.repeat(np.arange(len(servers)), servers), transport, rounds_inside,
        rounds_across,
    )  # fmt: skip


def rounds(program: Program, servers: Servers, transport: Transport) -> Template:
    """Every send of every round of a program; a transfer waits α, those that wait for nobody the start-up as well."""
    server = np.repeat(np.arange(len(servers)), servers)
    rolled = lockstep(program, 1.0, mixer=transport.mixer)
    added_s = rolled.added_s()
    slots = [(arrows.src_slot, arrows.dst_slot) for arrows in rolled.arrows]
    steps = write_out(rolled.slots, slots, rolled.order, added_s > 0)
    sends = steps.sends
    ends = [ends.astype(np.int64) for ends in rolled.all_pairs()]
    size = np.concatenate([arrows.size_bytes for arrows in rolled.arrows])
    src, dst = (np.where(of, end[steps.arrow], -1) for of, end in zip((sends, sends | steps.adds), ends, strict=True))
    inside = server[src] == server[dst]

    own = np.diff(steps.dep_start)
    first = own == 0
    deps = np.where(first, 1, own)
    dep = np.zeros(int(deps.sum()), np.int64)
    # Tasks of the template stand one behind those written out: task 0 is the arrival.
    dep[~np.repeat(first, deps)] = steps.dep + 1
    waited = np.zeros(len(own), bool)
    waited[steps.dep] = True
    start_up = np.where(sends, transport.rounds_s(inside) + np.where(first, transport.start_up_s, 0.0), 0.0)
    amount = np.where(sends, size[steps.arrow], np.where(steps.adds, added_s[steps.arrow], 0.0))
    return _between_markers(
        src, dst, amount, start_up, deps, dep,
        np.flatnonzero(~waited) + 1, server, transport,
    )  # fmt: skip


def _between_markers(
    src: NDArray[np.int64], dst: NDArray[np.int64], carried: NDArray[np.float64], start_up: NDArray[np.float64],
    deps: NDArray[np.int64], dep: NDArray[np.int64], last: NDArray[np.int64], server: NDArray[np.int64],
    transport: Transport, rounds_inside: int = 0, rounds_across: int = 0,
) -> Template:  # fmt: skip
    """Put the arrival in front and behind everything a marker that waits for the `last` tasks."""
    inside = server[src] == server[dst]
    marks = src < 0
    return Template(
        src=_framed(src, -1),
        dst=_framed(dst, -1),
        wire=_framed(np.where(marks, carried, carried * transport.wire_bytes(inside)), 0.0),
        start_up=_framed(start_up, 0.0),
        cap=_framed(np.where(marks, np.inf, transport.caps(inside)), np.inf),
        deps=np.concatenate([[0], deps, [len(last)]]),
        dep=np.concatenate([dep, last]),
        rounds_inside=rounds_inside,
        rounds_across=rounds_across,
        launch_s=transport.start_up_s,
    )


def _framed(column: NDArray[Any], edge: float) -> NDArray[Any]:
    return np.concatenate([[edge], column, [edge]]).astype(column.dtype)


def on_own_paths(
    poured: Template, schedule: Schedule, alone: float, servers: Servers, transport: Transport
) -> Template:
    """A template that was poured from the program of a schedule, over the paths of the schedule.

    Every path is a transfer of its own, at most as fast as where the collective has the links for itself and runs at
    `alone` bytes/s: they then carry what they were planned to carry, where even shares would give a heavy tree too
    little while light ones run ahead. Where other traffic is in the way, max-min decides.
    """
    routes, sends = schedule.routes, np.flatnonzero(poured.src >= 0)
    pair = routes.find(schedule.hosts[poured.src[sends]], schedule.hosts[poured.dst[sends]])
    first, paths = routes.path_start[pair], np.diff(routes.path_start)[pair]
    path, transfer = ranges(first, paths), np.repeat(sends, paths)
    wire = poured.wire[transfer] * routes.share[path]
    task = np.concatenate([[0], transfer, [poured.tasks - 1]])
    split = replace(
        poured, **{name: getattr(poured, name)[task] for name in ("src", "dst", "wire", "start_up", "cap", "deps")}
    )
    split.wire[1:-1] = wire
    server = np.repeat(np.arange(len(servers)), servers)
    inside = server[split.src[1:-1]] == server[split.dst[1:-1]]
    # A path brings its share of what is added up, where adders say how fast.
    cap = np.where(split.cap[1:-1] < transport.caps(inside), split.cap[1:-1] * routes.share[path], split.cap[1:-1])
    split.cap[1:-1] = np.minimum(cap, wire / transport.wire_bytes(inside) * alone)
    split.deps[-1] = len(path)
    single = single_paths(
        routes.fabric, routes.pair_src[routes.pair_of_path], routes.pair_dst[routes.pair_of_path], routes.link_start,
        routes.link,
    )  # fmt: skip
    placed = replace(
        split,
        dep=np.concatenate([np.zeros(len(path), np.int64), np.arange(1, len(path) + 1)]),
        route=np.concatenate([[-1], path, [-1]]),
        paths=replace(single, appended=single.pairs),
    )
    adds = poured.adds
    return _with_adds(placed, np.bincount(poured.dst[adds], weights=poured.wire[adds]).astype(np.float64))


def on_named_rows(written: Template, schedule: Schedule) -> Template:
    """A template whose rounds were written out, over the paths of the schedule: a send takes all paths of its pair."""
    routes, sends = schedule.routes, written.src >= 0
    route = np.full(written.tasks, -1)
    route[sends] = routes.find(schedule.hosts[written.src[sends]], schedule.hosts[written.dst[sends]])
    return replace(written, route=route, paths=replace(routes, appended=routes.pairs))


MODES: dict[str, Writer] = {"fluid": fluid, "rounds": rounds}
"""How programs are written out, by the name people type."""


def with_paths(schedule: Schedule, alone: float, servers: Servers, transport: Transport, mode: str) -> Template:
    """A schedule that brings its paths, written out in one of the modes."""
    template = MODES[mode](schedule.program, servers, transport)
    if mode == "fluid":
        return on_own_paths(template, schedule, alone, servers, transport)
    return on_named_rows(template, schedule)
