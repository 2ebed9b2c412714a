"""The collectives of a step, sorted into kinds: same act, same collective, groups that sit alike.

Collectives of one kind are the same tasks between other hosts, so each kind is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from ropewalk.choices import Choices
from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.collectives.group import Group
from ropewalk.collectives.nccl import Algorithm, ChosenRun, Library, chosen
from ropewalk.collectives.nccl.embedded import Cycles, joined_directly, rings_along_links
from ropewalk.collectives.over_servers import SEGMENTS, Servers
from ropewalk.collectives.program import Program
from ropewalk.collectives.table import Collective, beside
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.routing import Router, Routes
from ropewalk.task.nccl import least_template_of, template_of
from ropewalk.task.seating import GroupSeating, seat
from ropewalk.task.step import Act, Step
from ropewalk.task.synthesised import Placed, WantedCollective, placed
from ropewalk.task.template import MEETING, MODES, Template, with_paths
from ropewalk.task.transport import Transport

MOST_WRITTEN = 2_000_000
"""Tasks up to which the trees of a schedule are written out segment by segment."""


@dataclass(frozen=True, eq=False)
class AlikeCollectives:
    """Collectives that are the same tasks between other hosts: operation i of them is of group `members[row[i]]`."""

    operation: NDArray[np.int64]
    row: NDArray[np.int64]
    members: NDArray[np.int32]
    template: Template
    act: Act
    name: str
    """Of the collective that runs."""
    links: str = "routed"
    """Whose links it takes: those that it is routed over, its group's `own`, or the fabric `shared` with others."""
    promise: float | None = None
    """Bytes/s of every group while all of them run, where it was made for the network."""
    image: NDArray[np.int64] | None = None
    """By group: the links that stand for those of the paths of the template."""

    def paths(self, host: NDArray[np.int32]) -> Routes | None:
        """The paths of all groups, those of one after those of the other."""
        own = self.template.paths
        if own is None or self.image is None:
            return None
        rank = np.zeros(own.fabric.hosts, np.int64)
        hosts = host[self.members]
        rank[hosts[0]] = np.arange(hosts.shape[1])
        copies = len(hosts)
        return replace(
            own,
            pair_src=hosts[:, rank[own.pair_src]].ravel(),
            pair_dst=hosts[:, rank[own.pair_dst]].ravel(),
            path_start=_repeated(own.path_start, copies),
            share=np.tile(own.share, copies),
            link_start=_repeated(own.link_start, copies),
            link=self.image[:, own.link].ravel().astype(np.int32),
            appended=own.pairs * copies,
        )

    def digest(self) -> str:
        """What was made, as a fingerprint: the same question gives the same one, whatever the collective is called."""
        seen = sha256(self.act.key.encode())
        columns = ("src", "dst", "wire", "start_up", "cap", "route")
        paths = self.template.paths
        own = [] if paths is None or self.image is None else [paths.link_start, paths.link, self.image]
        for column in (self.members, *(getattr(self.template, name) for name in columns), *own):
            seen.update(np.ascontiguousarray(column).tobytes())
        return seen.hexdigest()


def _repeated(start: NDArray[np.int64], copies: int) -> NDArray[np.int64]:
    """Where rows begin when all of them stand there again and again."""
    turns = np.arange(copies)[:, None] * start[-1]
    return np.append((start[:-1] + turns).ravel(), copies * start[-1])


Settled = tuple[tuple[Servers, ChosenRun], ...]
"""What groups that sit so in servers run."""

Made = dict[Hashable, list[Placed]]
"""Schedules that were made for groups of one network, by what they were made for."""


@dataclass(frozen=True, eq=False)
class Use:
    """What turns the collectives of a step into tasks."""

    fabric: Fabric
    host: NDArray[np.int32]
    """Of each rank."""
    server: NDArray[np.int32]
    """Of each host."""
    choice: CollectiveChoice
    table: Choices[Collective]
    transport: Transport
    mode: str
    router: Router | None = None
    """Says which links are on the usual paths of a group; without it, no collective brings its own."""
    made: Made = field(default_factory=dict)
    """Schedules that were made already, for who expands a step again and again."""
    library: Library | None = None
    """Who chooses by size, where a collective leaves that to a library."""
    settled: Mapping[int, Settled] = field(default_factory=dict)
    """By operation: what its groups run, where that does not follow from the size in the step."""
    least: Algorithm | None = None
    """Where a library chooses: let this algorithm run with the least latency and the most bandwidth that any size has.
    """
    shares_adders: bool = True
    """Where rounds flow together: do collectives that are under way together take turns at the adders of ranks?"""

    def written(self, template: Template) -> Template:
        """A template as it is used here."""
        return template if self.shares_adders or self.mode != "fluid" else template.without_adds()

    def asked_library(self) -> Library:
        """The library that chooses, which has to be there."""
        if self.library is None:
            raise GraphError("nccl chooses by the cluster it runs on: expand the step with its library")
        return self.library


def kinds_of_collectives(step: Step, use: Use) -> list[AlikeCollectives]:
    """Every collective of a step, kind by kind."""
    collective = np.flatnonzero(step.act >= Act.ALL_REDUCE)
    if not len(collective):
        return []
    seated = seat(step.groups, use.server[use.host])
    seating = seated.seating_of[step.group[collective]]
    names, name_of_stream = _names(step, use.choice)
    key = step.act[collective].astype(np.int64) * len(seated.seatings) + seating
    key = key * len(names) + name_of_stream[step.stream[collective]]
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    kinds: list[AlikeCollectives] = []
    for part in np.split(order, cuts):
        operation = collective[part]
        sat = seated.seatings[int(seating[part[0]])]
        act, name = Act(int(step.act[operation[0]])), names[int(name_of_stream[step.stream[operation[0]]])]
        met = _Meetings(operation, seated.row[step.group[operation]], sat)
        if use.table.named(name).chooses and act is not Act.BARRIER and sat.ranks > 1:
            kinds += _chosen(act, met, step.amount[operation] / step.repeats[operation], use)
        else:
            kinds += _kinds(act, name, met, use)
    return kinds


def _chosen(act: Act, met: _Meetings, size_bytes: NDArray[np.float64], use: Use) -> Iterator[AlikeCollectives]:
    """What a library runs for every size: operations of different sizes may be of different kinds."""
    library, servers = use.asked_library(), met.sat.servers
    if use.mode != "fluid":
        raise GraphError(f"nccl is not expanded in mode {use.mode}: use mode fluid, or the algorithm ring")
    if use.least is not None:
        template = least_template_of(act, use.least, servers, library)
        yield AlikeCollectives(met.operation, met.row, met.sat.members, template, act, f"nccl {use.least}")
        return
    sizes, which = np.unique(size_bytes, return_inverse=True)
    by_size = [chosen(act, library.communicator(servers), size) for size in sizes.tolist()]
    runs = [by_size[at] for at in which.tolist()]
    if use.settled:
        own = (use.settled.get(one) for one in met.operation.tolist())
        runs = [run if said is None else dict(said)[servers] for run, said in zip(runs, own, strict=True)]
    for run in dict.fromkeys(runs):
        name, mine = f"nccl {run.algorithm}/{run.protocol}", np.array([one == run for one in runs], np.bool_)
        for cycles, rows in _along_links(met, use).items():
            here = mine & np.isin(met.row, rows)
            template = template_of(act, run, servers, library, cycles)
            yield AlikeCollectives(met.operation[here], met.row[here], met.sat.members, template, act, name)


def _along_links(met: _Meetings, use: Use) -> dict[Cycles, list[int]]:
    """Rows of groups by the rings that NCCL lays along the links of their server, where no switch joins its GPUs."""
    if len(met.sat.servers) > 1 or not joined_directly(use.fabric):
        return {(): list(range(len(met.sat.members)))}
    found: dict[Cycles, list[int]] = {}
    for row, members in enumerate(met.sat.members):
        found.setdefault(rings_along_links(use.fabric, use.host[members]), []).append(row)
    return found


@dataclass(frozen=True, eq=False)
class _Meetings:
    """Operations of one act and collective whose groups sit alike."""

    operation: NDArray[np.int64]
    row: NDArray[np.int64]
    sat: GroupSeating


def missing_acts(step: Step, choice: CollectiveChoice, table: Mapping[str, Collective]) -> tuple[str, ...]:
    """What runs something else than was chosen, because the collective that was chosen does not have the act."""
    used = np.unique(np.column_stack([step.act, step.stream])[step.act >= Act.ALL_REDUCE], axis=0)
    notes = []
    for number, stream in used.tolist():
        act, purpose = Act(number), step.streams[stream]
        name = choice.name_for(purpose)
        # That rings exchange directly needs no saying: nobody has rings for an all-to-all.
        if act is not Act.BARRIER and act not in table[name].make and name != "ring":
            notes.append(f"{purpose}: {name} does not support {act.words}, which runs as {beside(act)}")
    return tuple(notes)


def _names(step: Step, choice: CollectiveChoice) -> tuple[list[str], NDArray[np.int64]]:
    """The collectives that are chosen, and which of them each stream has."""
    chosen = [choice.name_for(purpose) for purpose in step.streams]
    names = list(dict.fromkeys(chosen))
    return names, np.array([names.index(name) for name in chosen], np.int64)


def _kinds(act: Act, name: str, met: _Meetings, use: Use) -> Iterator[AlikeCollectives]:
    sat = met.sat
    if act is Act.BARRIER or sat.ranks == 1:
        yield AlikeCollectives(met.operation, met.row, sat.members, MEETING, act, "none")
        return
    if act not in use.table.named(name).make:
        name = beside(act)
    record = use.table[name]
    # Of a single group it is known where it sits; several that sit alike share what depends on their servers alone.
    alone = use.host[sat.members[0]].tolist() if len(sat.members) == 1 or record.own_paths else []
    group = Group(
        sat.servers,
        fabric=use.fabric if alone else None,
        members=tuple(alone),
        own_paths=use.router is not None,
    )
    refusal = use.table.refusal(name, act, group)
    if refusal is not None:
        raise GraphError(f"{act.words} of {sat.ranks} ranks: {refusal}")
    if record.own_paths:
        yield from _synthesised(act, record, met, use)
        return
    if alone:
        template = MODES[use.mode](record.program(act, group), sat.servers, use.transport)
    else:
        template = _shared(record.program, act, group, use.mode, use.transport)
    yield AlikeCollectives(met.operation, met.row, sat.members, use.written(template), act, name)


@lru_cache(maxsize=512)
def _shared(
    program: Callable[[Act, Group], Program], act: Act, group: Group, mode: str, transport: Transport
) -> Template:
    """What depends on the servers of a group alone, whichever network they are on."""
    return MODES[mode](program(act, group), group.servers, transport)


def _synthesised(act: Act, record: Collective, met: _Meetings, use: Use) -> Iterator[AlikeCollectives]:
    """One kind for every schedule that had to be made."""
    used, row = np.unique(met.row, return_inverse=True)
    members = met.sat.members[used]
    segments = SEGMENTS if use.mode == "rounds" else 1
    assert use.router is not None
    wanted = WantedCollective(act, record, met.sat.servers, use.host[members], use.fabric, use.router, segments)
    key = (act, record.name, met.sat.servers, wanted.hosts.tobytes(), segments)
    if key not in use.made:
        use.made[key] = placed(wanted)
    for one in use.made[key]:
        rows = one.alike.rows
        place = np.full(len(members), -1)
        place[rows] = np.arange(len(rows))
        here = place[row] >= 0
        template = use.written(with_paths(one.schedule, one.alone, met.sat.servers, use.transport, use.mode))
        written = template.tasks * int(here.sum())
        if use.mode == "rounds" and written > MOST_WRITTEN:
            raise GraphError(
                f"{act.words} of {met.sat.ranks} ranks: the rounds of {record.name} are {written:.2g} tasks, more than "
                f"{MOST_WRITTEN:.2g}: use mode fluid"
            )
        yield AlikeCollectives(
            met.operation[here], place[row[here]], members[rows], template, act, record.name, one.links, one.promise,
            one.alike.image,
        )  # fmt: skip
