"""The synchronisation study: how long one all-reduce takes for every logical topology on every physical one.

Each combination is a row: the closed form beside a flow-level simulation of the very program that the closed form
describes, on the routes that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ropewalk.collective import ALL_REDUCES
from ropewalk.collective.cost import ClosedForm, bandwidth_bound, closed_forms
from ropewalk.collective.program import MOST_ARROWS
from ropewalk.errors import Findings, InputError, PhysicsError, ProgramError
from ropewalk.fabric import Fabric, builder, nearest
from ropewalk.fabric.expression import FAMILIES, fabric, is_path
from ropewalk.routing import ROUTERS, Routes, default_router_name, fitting_router_names
from ropewalk.routing.one_sender import OneSender
from ropewalk.sim import rounds_link_bytes, simulate_rounds
from ropewalk.task import Lockstep, lockstep
from ropewalk.task.plausibility import LARGEST_TRANSFER, LONGEST_WAIT, link_slips
from ropewalk.task.routed import route_rounds
from ropewalk.units import show_seconds, show_size

LEVELS = ("closed", "flow")
DEFAULT_LOGICAL = ("ps", "mesh", "ring", "halving-doubling", "hips")
DEFAULT_PHYSICAL = ("fat-tree", "leaf-spine", "bcube", "torus", "switch")

MOST_HOSTS = 1 << 16
"""Hosts up to which programs are written out and simulated."""

Advance = Callable[[int, int, str], None]
"""Called with (rows done, rows in all, what comes next) while a study runs."""


@dataclass(frozen=True)
class SyncQuestion:
    """What to compare, as the user asked for it."""

    logical: tuple[str, ...] = DEFAULT_LOGICAL
    physical: tuple[str, ...] = DEFAULT_PHYSICAL
    hosts: tuple[int, ...] = (64,)
    sizes: tuple[int, ...] = (575_000_000,)
    bandwidths: tuple[float, ...] = (5e9,)
    start_up_s: float = 10e-6
    hop_latency_s: float = 0.0
    levels: tuple[str, ...] = LEVELS
    routing: tuple[str, ...] = ("default",)
    seed: int = 0
    symmetry: bool = True
    nearest: bool = False


@dataclass(frozen=True, eq=False)
class SyncRow:
    """One combination at one level."""

    logical: str
    physical: str
    fabric: str
    hosts: int
    size_bytes: int
    bandwidth: float
    start_up_s: float
    level: str
    routing: str
    sync_time_s: float
    closed_form_s: float | None
    closed_form_edition: str | None
    closed_form: str | None
    """The formula as people write it."""
    closed_form_is_bound: bool
    paper_form_s: float | None
    """The published form, where it differs from the exact one."""
    max_link_share: float | None
    """Bytes over the busiest link in units of the size, at the speed of a host link: the bandwidth term of the sync
    time in units of P/B. None where the program is too large to count (a mesh of 16,384 ranks, closed form only)."""
    lower_bound_s: float
    """No all-reduce on these hosts can be faster."""
    rounds: int
    transfers: int | None
    classes: int | None
    link_load: NDArray[np.float64] = field(repr=False)
    """Load of each link that is used, in units of the size over a host link (see `max_link_share`)."""

    def as_json(self) -> dict[str, object]:
        return {
            "logical": self.logical,
            "physical": self.physical,
            "fabric": self.fabric,
            "hosts": self.hosts,
            "size_bytes": self.size_bytes,
            "bandwidth_bytes_per_s": self.bandwidth,
            "latency_s": self.start_up_s,
            "level": self.level,
            "routing": self.routing,
            "sync_time_s": self.sync_time_s,
            "closed_form_s": self.closed_form_s,
            "closed_form_edition": self.closed_form_edition,
            "closed_form": self.closed_form,
            "closed_form_is_bound": self.closed_form_is_bound,
            "paper_form_s": self.paper_form_s,
            "max_link_share": self.max_link_share,
            "lower_bound_s": self.lower_bound_s,
            "rounds": self.rounds,
            "transfers": self.transfers,
            "classes": self.classes,
        }


@dataclass(frozen=True)
class SyncStudy:
    """The question and all rows that answer it."""

    question: SyncQuestion
    rows: tuple[SyncRow, ...]
    notes: tuple[str, ...]
    """What the reader should know: sizes that were moved to the nearest one, combinations without a closed form."""
    fabrics: tuple[Fabric, ...] = ()
    """The fabrics of the rows, each once."""


@dataclass(frozen=True)
class _Place:
    """One fabric of the study."""

    family: str
    fabric: Fabric
    bandwidth: float


def study(question: SyncQuestion, advance: Advance | None = None) -> SyncStudy:
    """Answer the question row by row; names, units, sizes and routings are checked all at once before anything runs."""
    findings = Findings(InputError, "sync")
    _check_question(question, findings)
    places, notes = _places(question, findings)
    _check_places(question, places, findings)
    findings.raise_if_any()
    work = [
        (place, size, logical, routing)
        for place, size, logical, routing in product(places, question.sizes, question.logical, question.routing)
    ]
    rows: list[SyncRow] = []
    total = len(work) * len(question.levels)
    for place, size, logical, routing in work:
        if advance is not None:
            advance(len(rows), total, f"{logical} on {place.fabric.name}")
        rows.extend(_rows(question, place, size, logical, routing))
    if advance is not None:
        advance(total, total, "done")
    if "closed" in question.levels:
        notes += _without_closed_form(rows, work)
    if not rows:
        raise InputError("sync: no combination has a closed form: add --level flow")
    fabrics = {place.fabric.name: place.fabric for place in places}
    return SyncStudy(question, tuple(rows), tuple(notes), tuple(fabrics.values()))


def _without_closed_form(rows: list[SyncRow], work: list[tuple[_Place, int, str, str]]) -> list[str]:
    known = {(row.fabric, row.logical) for row in rows if row.closed_form_s is not None}
    missing = dict.fromkeys((place.fabric.name, logical) for place, _, logical, _ in work)
    return [f"{logical} on {name} has no closed form" for name, logical in missing if (name, logical) not in known]


def _rows(question: SyncQuestion, place: _Place, size: int, logical: str, routing: str) -> Iterator[SyncRow]:
    router = default_router_name(place.fabric) if routing == "default" else routing
    exact, paper = _forms(logical, place, router)
    closed_s = exact.seconds(size, place.bandwidth, question.start_up_s) if exact else None
    bound = bandwidth_bound(place.fabric, size)
    way = ROUTERS[router](question.seed)
    rounds = Lockstep(logical, 0, (), np.zeros(0, np.int64))
    routes: Routes | OneSender = way(place.fabric, *rounds.all_pairs())
    if place.fabric.hosts <= MOST_HOSTS:
        try:
            whole = lockstep(ALL_REDUCES[logical](place.fabric), float(size), question.start_up_s)
            if "flow" in question.levels or max(arrows.transfers for arrows in whole.arrows) <= MOST_ARROWS:
                rounds, routes = whole, route_rounds(whole, place.fabric, way, symmetry=question.symmetry)
        except ProgramError:
            # Too large to write out: the formula still stands, where it was all that was asked for.
            if "flow" in question.levels or closed_s is None:
                raise
    load = rounds_link_bytes(rounds, routes) / place.fabric.bandwidth * (place.bandwidth / size)
    for level in question.levels:
        if level == "closed" and closed_s is None:
            continue
        seconds, classes = (closed_s, None) if level == "closed" else _flow(question, rounds, routes)
        assert seconds is not None
        if seconds < bound * (1 - 1e-9):
            raise PhysicsError(
                f"{logical} on {place.fabric.name}: {show_seconds(seconds)} is below the bandwidth bound "
                f"{show_seconds(bound)}, which no all-reduce can beat: a slip of units or a wrong closed form"
            )
        yield SyncRow(
            logical, place.family, place.fabric.name, place.fabric.hosts, size, place.bandwidth, question.start_up_s,
            level, router, seconds, closed_s, exact.edition if exact else None, exact.formula if exact else None,
            # The closed forms charge α, not the latency of hops.
            exact is not None and (exact.is_bound or question.hop_latency_s > 0),
            paper.seconds(size, place.bandwidth, question.start_up_s) if paper else None,
            float(load.max()) if rounds.rounds else None,
            bound, rounds.rounds or (exact.rounds if exact else 0), rounds.transfers or None, classes, load[load > 0],
        )  # fmt: skip


def _flow(question: SyncQuestion, rounds: Lockstep, routes: Routes | OneSender) -> tuple[float, int]:
    trace = simulate_rounds(rounds, routes, symmetry=question.symmetry)
    return trace.makespan, trace.classes


def _forms(logical: str, place: _Place, router: str) -> tuple[ClosedForm | None, ClosedForm | None]:
    """The exact closed form (or what is counted in its place) and the published one where it differs."""
    if place.fabric.builder is None:
        return None, None
    forms = closed_forms(logical, place.fabric.builder, router)
    exact = next((form for form in forms if form.edition != "paper"), None)
    return exact, next((form for form in forms if form.edition == "paper"), None)


def _places(question: SyncQuestion, findings: Findings) -> tuple[list[_Place], list[str]]:
    places: list[_Place] = []
    notes: list[str] = []
    for bandwidth, name in product(question.bandwidths, question.physical):
        if is_path(name):
            continue
        for hosts in (None,) if ":" in name else question.hosts:
            try:
                if question.nearest and hosts is not None and name in FAMILIES:
                    record = nearest(name, hosts)
                    if record.hosts != hosts:
                        notes.append(f"{name} has no size of {hosts} hosts, {record.expression} has {record.hosts}")
                    found = fabric(record.expression, bandwidth=bandwidth, latency=question.hop_latency_s)
                else:
                    found = builder(name, bandwidth, question.hop_latency_s, hosts).build()
            except InputError as error:
                findings.add(str(error))
                continue
            places.append(_Place(name.partition(":")[0], found, bandwidth))
    for name in filter(is_path, question.physical):
        try:
            found = fabric(name)
        except InputError as error:
            findings.add(str(error))
            continue
        notes.append(f"{name} has its own hosts, bandwidths and latencies")
        places.append(_Place(found.name, found, float(found.bandwidth.max())))
    return places, list(dict.fromkeys(notes))


def _check_question(question: SyncQuestion, findings: Findings) -> None:
    for given, known, what in (
        (question.logical, tuple(ALL_REDUCES), "logical topology"),
        (question.levels, LEVELS, "level"),
        (question.routing, ("default", *ROUTERS), "routing"),
    ):
        for name in given:
            if name not in known:
                findings.add(f"unknown {what} {name!r}: use one of {', '.join(known)}")
    for size in question.sizes:
        if not 1 <= size <= LARGEST_TRANSFER:
            findings.add(f"a size of {show_size(size)} cannot be meant: give the bytes of a model, such as 575MB")
    if question.start_up_s > LONGEST_WAIT:
        findings.add(f"a start-up of {show_seconds(question.start_up_s)} cannot be meant: give it as, say, 10us")


def _check_places(question: SyncQuestion, places: list[_Place], findings: Findings) -> None:
    for place in places:
        if place.fabric.hosts > MOST_HOSTS and "flow" in question.levels:
            findings.add(f"{place.fabric.name} has more than {MOST_HOSTS} hosts: use --level closed for it")
        for slip in link_slips(place.fabric):
            findings.add(f"{place.fabric.name}: {slip}")
        fitting = ("default", *fitting_router_names(place.fabric))
        for name in question.routing:
            if name in ROUTERS and name not in fitting:
                findings.add(f"{name} does not route on {place.fabric.name}: use one of {', '.join(fitting)}")
