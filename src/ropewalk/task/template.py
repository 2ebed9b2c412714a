"""A collective written out once for all groups that sit alike in servers: tasks between places in the group.

Task 0 is the marker at which every member has arrived, the last task the marker that waiters wait for. Two ways to
write a program out:

- `fluid`: for every pair all that it exchanges over the whole program as one transfer, after the time that all rounds
  take on top of their bytes. Few tasks; right where rounds are pipelined so finely that all links are busy all the
  time. Bytes of different phases of a hierarchy overlap then, and a chain has no time to fill. A round that is repeated
  counts as crossing between servers in the part of its repetitions in which a chunk crosses.
- `rounds`: every send of every round, in lockstep. Many tasks; phases come one after the other.

They agree where every round keeps the same links busy from its first to its last byte: rings on a quiet fabric inside
one server or with one rank a server, meshes, and halving-doubling on one switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.collective import Program
from ropewalk.collective.over_servers import Servers
from ropewalk.task.lockstep import lockstep, write_out
from ropewalk.task.transport import Transport


@dataclass(frozen=True, eq=False)
class Template:
    """Columns by task; dependencies are tasks of the template, and task 0 has none of them."""

    src: NDArray[np.int64]
    """Place in the group, -1 for a marker."""
    dst: NDArray[np.int64]
    wire: NDArray[np.float64]
    """Bytes on the wire for each byte that the collective is of."""
    start_up: NDArray[np.float64]
    cap: NDArray[np.float64]
    deps: NDArray[np.int64]
    dep: NDArray[np.int64]
    rounds_inside: int = 0
    """Rounds that a transfer of the template stands for, within servers and across: latencies it leaves out."""
    rounds_across: int = 0

    @property
    def tasks(self) -> int:
        return len(self.src)


Writer = Callable[[Program, Servers, Transport], Template]
ROUNDING = 1e-9

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
    waiting = transport.start_up_s + inside * transport.round_inside_s + across * transport.round_across_s
    transfers = np.arange(1, len(pair) + 1)
    return _between_markers(
        src, dst, carried, np.full(len(pair), waiting), np.ones(len(pair), np.int64), np.zeros(len(pair), np.int64),
        transfers, server, transport, inside, across,
    )  # fmt: skip


def rounds(program: Program, servers: Servers, transport: Transport) -> Template:
    """Every send of every round of a program; a transfer waits α, those that wait for nobody the start-up as well."""
    server = np.repeat(np.arange(len(servers)), servers)
    rolled = lockstep(program, 1.0)
    steps = write_out(rolled.slots, [(arrows.src_slot, arrows.dst_slot) for arrows in rolled.arrows], rolled.order)
    sends = steps.arrow >= 0
    ends = [ends.astype(np.int64) for ends in rolled.all_pairs()]
    size = np.concatenate([arrows.size_bytes for arrows in rolled.arrows])
    src, dst = (np.where(sends, end[steps.arrow], -1) for end in ends)
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
    return _between_markers(
        src, dst, np.where(sends, size[steps.arrow], 0.0), start_up, deps, dep,
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
        wire=_framed(carried * transport.wire_bytes(inside), 0.0),
        start_up=_framed(start_up, 0.0),
        cap=_framed(np.where(marks, np.inf, transport.caps(inside)), np.inf),
        deps=np.concatenate([[0], deps, [len(last)]]),
        dep=np.concatenate([dep, last]),
        rounds_inside=rounds_inside,
        rounds_across=rounds_across,
    )


def _framed(column: NDArray[Any], edge: float) -> NDArray[Any]:
    return np.concatenate([[edge], column, [edge]]).astype(column.dtype)


MODES: dict[str, Writer] = {"fluid": fluid, "rounds": rounds}
"""The ways of writing programs out, by the name people type."""
