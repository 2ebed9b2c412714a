"""The fabrics of a study, and everything about a question that can be refused before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ropewalk.collectives.act import Act
from ropewalk.collectives.group import whole_fabric
from ropewalk.collectives.mixer import MixPlace
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import Findings, InputError
from ropewalk.fabric import Fabric, builder, nearest
from ropewalk.fabric.expression import fabric, has_open_size, is_path
from ropewalk.fabric.families import FAMILIES
from ropewalk.routing import DEFAULT, ROUTERS
from ropewalk.sync.axes import check_axes, has_axes, members
from ropewalk.sync.question import LEVELS, SyncQuestion
from ropewalk.task.plausibility import LARGEST_TRANSFER, LONGEST_WAIT, link_slips
from ropewalk.units import show_seconds, show_size

MOST_HOSTS = 1 << 16
"""Hosts up to which programs are written out and simulated."""

MOST_PACKET_HOSTS = 4096
"""Hosts up to which every pair has its own routes, as packets need them."""


@dataclass(frozen=True)
class StudiedFabric:
    """One fabric of the study."""

    family: str
    fabric: Fabric
    bandwidth: float


def places_of(question: SyncQuestion, findings: Findings) -> tuple[list[StudiedFabric], list[str]]:
    places: list[StudiedFabric] = []
    notes: list[str] = []
    for bandwidth, name in product(question.bandwidths, question.physical):
        if is_path(name):
            continue
        for hosts in question.hosts if has_open_size(name) else (None,):
            try:
                for expression, size in _members(question, name, hosts, notes):
                    found = builder(expression, bandwidth, question.hop_latency_s, size).build()
                    places.append(StudiedFabric(name.partition(":")[0], found, bandwidth))
            except InputError as error:
                findings.add(str(error))
    for name in filter(is_path, question.physical):
        try:
            found = fabric(name)
        except InputError as error:
            findings.add(str(error))
            continue
        notes.append(f"{name} has its own hosts, bandwidths and latencies")
        places.append(StudiedFabric(found.name, found, float(found.bandwidth.max())))
    return places, list(dict.fromkeys(notes))


def _members(question: SyncQuestion, name: str, hosts: int | None, notes: list[str]) -> list[tuple[str, int | None]]:
    """What a name stands for with so many hosts: expressions, with a size where they leave it open."""
    if hosts is None or name.partition(":")[0] not in FAMILIES:
        return [(name, hosts)]
    if question.axes is not None and has_axes(name):
        found = members(question, name, hosts)
    elif question.nearest:
        found = [nearest(name, hosts)]
    else:
        return [(name, hosts)]
    notes += [
        f"{name} has no size of {hosts} hosts, {record.expression} has {record.hosts}"
        for record in found
        if record.hosts != hosts
    ]
    return [(record.expression, None) for record in found]


def check_question(question: SyncQuestion, findings: Findings) -> None:
    check_axes(question, findings)
    for name in question.levels:
        if name not in LEVELS:
            findings.add(f"unknown level {name!r}: use one of {', '.join(LEVELS)}")
    for name in question.routing:
        if name != DEFAULT and name not in ROUTERS:
            findings.add(ROUTERS.unknown(name, also=[DEFAULT]))
    for name in question.logical:
        if name not in COLLECTIVES:
            findings.add(COLLECTIVES.unknown(name))
    for size in question.sizes:
        if not 1 <= size <= LARGEST_TRANSFER:
            findings.add(f"a size of {show_size(size)} is out of range: give the bytes of a model, such as 575MB")
    if question.packet_levels:
        question.packet.check(question.transports, findings, question.routing)
    if question.mixer.place is MixPlace.NETWORK:
        findings.add(
            "these all-reduces reduce on ranks, not in switches: leave network out, as in --mix 5GB/s, or use "
            "`ropewalk collective --in-network`"
        )
    if question.start_up_s > LONGEST_WAIT:
        findings.add(f"a start-up of {show_seconds(question.start_up_s)} is out of range: write it like 10us")


def check_places(question: SyncQuestion, places: list[StudiedFabric], findings: Findings) -> None:
    for place in places:
        if place.fabric.hosts > MOST_HOSTS and question.simulates:
            findings.add(f"{place.fabric.name} has more than {MOST_HOSTS} hosts: use --level closed for it")
        elif place.fabric.hosts > MOST_PACKET_HOSTS and question.packet_levels:
            findings.add(
                f"{place.fabric.name} has more than {MOST_PACKET_HOSTS} hosts, too many for packets: use --level flow"
            )
        for slip in link_slips(place.fabric):
            findings.add(f"{place.fabric.name}: {slip}")
        group = whole_fabric(place.fabric)
        for name in question.logical:
            refusal = COLLECTIVES.refusal(name, Act.ALL_REDUCE, group) if name in COLLECTIVES else None
            if refusal is not None:
                findings.add(f"{place.fabric.name}: {refusal}")
        for name in question.routing:
            refusal = ROUTERS.refusal(name, place.fabric) if name in ROUTERS else None
            if refusal is not None:
                findings.add(refusal)
