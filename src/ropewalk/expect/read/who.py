"""From names in files to GPUs of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ropewalk.errors import Findings, InputError
from ropewalk.expect.read.record import Place, Record
from ropewalk.fabric import Fabric

Groups = tuple[tuple[int, ...], ...]
MOST_BYTES, LONGEST_S = 1 << 50, 1e6
"""Beyond these a file is broken."""


@dataclass(frozen=True)
class Measurement:
    """A benchmark of one size that took so long, with the GPUs that took part."""

    benchmark: str
    size_bytes: int
    seconds: float
    groups: Groups
    source: str
    wrong: int = 0
    """Values that came out wrong."""


@dataclass(eq=False)
class ServerNames:
    """The servers of a cluster and what files call them."""

    fabric: Fabric
    names: tuple[str, ...] = ()
    """Of the servers, as files call them; completed in the order of the files where none are given."""
    _number: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._number = {name: number for number, name in enumerate(self.names)}

    @cached_property
    def servers(self) -> list[list[int]]:
        """GPUs of every server."""
        fabric = self.fabric
        server = np.arange(fabric.hosts) if fabric.server is None else fabric.server
        return [np.flatnonzero(server == number).tolist() for number in np.unique(server).tolist()]

    def in_trays(self, places: Iterable[Place]) -> None:
        """Take servers of one NVLink domain for as many trays as there are names, if so the GPUs of all of them fit.

        Each tray of an NVL72 is a computer of its own, with four GPUs that it numbers from 0.
        """
        named = [place for place in places if isinstance(place, tuple)]
        names = dict.fromkeys([*self.names, *(name for name, _ in named)])
        if not named or len(names) <= len(self.servers):
            return
        each = 1 + max(number for _, number in named)
        if all(len(gpus) % each == 0 for gpus in self.servers) and len(names) * each <= self.fabric.hosts:
            self.servers = [gpus[at : at + each] for gpus in self.servers for at in range(0, len(gpus), each)]

    @cached_property
    def gpus(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.fabric.node_names[: self.fabric.hosts])}

    def gpu(self, place: Place) -> int:
        """The number of a GPU; what does not exist is refused with a remedy."""
        if isinstance(place, tuple):
            return self._on_server(*place)
        if isinstance(place, int):
            if place >= self.fabric.hosts:
                raise InputError(
                    f"there is no rank {place} on {self.fabric.hosts} GPUs: name the cluster that it ran on"
                )
            return place
        if place not in self.gpus:
            last = self.fabric.node_names[self.fabric.hosts - 1]
            raise InputError(f"there is no GPU {place!r}: they are {self.fabric.node_names[0]} to {last}")
        return self.gpus[place]

    def _on_server(self, name: str, number: int) -> int:
        if name not in self._number:
            if self.names:
                raise InputError(f"server {name} is not among --hosts ({', '.join(self.names)}): add it")
            if len(self._number) == len(self.servers):
                raise InputError(
                    f"server {name} is one more than the {len(self.servers)} of the cluster: name the cluster that "
                    "was measured, or say with --hosts which servers are which"
                )
            self._number[name] = len(self._number)
        if self._number[name] >= len(self.servers):
            raise InputError(
                f"server {name} is number {self._number[name]} of --hosts, and the cluster has {len(self.servers)}: "
                "name the cluster that was measured"
            )
        gpus = self.servers[self._number[name]]
        if number >= len(gpus):
            raise InputError(f"server {name} has no GPU {number}, only {len(gpus)}: name the cluster that was measured")
        return gpus[number]


def measurements_of(records: Sequence[Record], roster: ServerNames) -> list[Measurement]:
    """The same measurements by the GPUs of the cluster; everything that does not fit is said at once."""
    findings = Findings(InputError, "measurements")
    found, everyone = [], (tuple(range(roster.fabric.hosts)),)
    told: set[str] = set()
    roster.in_trays(place for record in records for group in record.who for place in group)
    for record in records:
        try:
            groups = tuple(tuple(map(roster.gpu, group)) for group in record.who) or everyone
            _check(record, groups)
        except InputError as problem:
            if str(problem) not in told:
                told.add(str(problem))
                findings.add(f"{record.source}: {problem}")
            continue
        found.append(
            Measurement(record.benchmark, record.size_bytes, record.seconds, groups, record.source, record.wrong)
        )
    findings.raise_if_any()
    return found


def _check(record: Record, groups: Groups) -> None:
    if not 0 < record.size_bytes <= MOST_BYTES or not 0 < record.seconds < LONGEST_S:
        raise InputError("no collective has this size or time: check the file")
    sizes = {len(group) for group in groups}
    if min(sizes) < 2:
        raise InputError("a single GPU measures no network: run it with two or more (-g 2, or more processes)")
    if any(len(set(group)) < len(group) for group in groups):
        raise InputError("a GPU takes part twice: give every rank its own GPU")
    if record.ranks is not None and record.ranks not in sizes:
        raise InputError(
            f"{record.ranks} ranks took part, but the named cluster has {max(sizes)}: name the cluster that "
            "was measured"
        )
