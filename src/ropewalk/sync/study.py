"""The synchronisation study: how long one all-reduce takes for every logical topology on every physical one.

Each combination is a row: the closed form beside simulations of the very program that the closed form describes, as
flows and packet by packet, on the routes that were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from ropewalk.collectives.cost import ClosedForm, bandwidth_bound, closed_forms
from ropewalk.collectives.cost.mixing import Mixed, mixed_seconds
from ropewalk.collectives.program import MOST_ARROWS, Program
from ropewalk.collectives.table import program_on
from ropewalk.errors import Findings, InputError, PhysicsError, ProgramError
from ropewalk.fabric import Fabric
from ropewalk.progress import Progress, Say
from ropewalk.routing import ROUTERS, Routes, router_for
from ropewalk.routing.one_sender import OneSender
from ropewalk.sim import rounds_link_bytes, simulate_rounds
from ropewalk.sync.axes import axes_of
from ropewalk.sync.levels import PACKET_LEVELS, Packets, Timed
from ropewalk.sync.places import MOST_HOSTS, StudiedFabric, check_places, check_question, places_of
from ropewalk.sync.question import SyncQuestion
from ropewalk.sync.row import SyncRow
from ropewalk.task import Lockstep, lockstep
from ropewalk.task.routed import route_rounds
from ropewalk.units import show_seconds, show_size


@dataclass(frozen=True)
class SyncStudy:
    """The question and all rows that answer it."""

    question: SyncQuestion
    rows: tuple[SyncRow, ...]
    notes: tuple[str, ...]
    """What the reader should know: sizes that were moved to the nearest one, combinations without a closed form."""
    fabrics: tuple[Fabric, ...] = ()
    """The fabrics of the rows, each once."""


def answer(question: SyncQuestion, progress: Progress | None = None) -> SyncStudy:
    """Answer the question row by row; names, units, sizes and routings are checked all at once before anything runs."""
    findings = Findings(InputError, "sync")
    check_question(question, findings)
    places, notes = places_of(question, findings)
    check_places(question, places, findings)
    findings.raise_if_any()
    work = [
        (place, size, logical, routing)
        for place, size, logical, routing in product(places, question.sizes, question.logical, question.routing)
    ]
    if "packet" in question.levels:
        _refuse_what_is_too_large(question, work)
    rows: list[SyncRow] = []
    plain = len(question.levels) - len(question.packet_levels)
    total = len(work) * (plain + len(question.packet_levels) * len(question.transports))
    for place, size, logical, routing in work:
        say = partial(progress, len(rows), total) if progress is not None else None
        if say is not None:
            say(f"{logical} on {place.fabric.name}")
        rows.extend(_rows(question, place, size, logical, routing, say))
    if progress is not None:
        progress(total, total, "done")
    if "closed" in question.levels:
        notes += _without_closed_form(rows, work)
    if not rows:
        raise InputError("sync: no combination has a closed form: add --level flow")
    notes += _choices(rows)
    fabrics = {place.fabric.name: place.fabric for place in places}
    return SyncStudy(question, tuple(rows), tuple(notes), tuple(fabrics.values()))


def _without_closed_form(rows: list[SyncRow], work: list[tuple[StudiedFabric, int, str, str]]) -> list[str]:
    known = {(row.fabric, row.logical) for row in rows if row.closed_form_s is not None}
    missing = dict.fromkeys((place.fabric.name, logical) for place, _, logical, _ in work)
    return [f"{logical} on {name} has no closed form" for name, logical in missing if (name, logical) not in known]


def _rows(
    question: SyncQuestion, place: StudiedFabric, size: int, logical: str, routing: str, say: Say | None
) -> Iterator[SyncRow]:
    router = router_for(place.fabric, routing).name
    exact, paper = _forms(logical, place, router)
    bound = bandwidth_bound(place.fabric, size)
    way = ROUTERS[router].make(question.seed)
    rounds, program = Lockstep(logical, 0, (), np.zeros(0, np.int64)), None
    routes: Routes | OneSender = way(place.fabric, *rounds.all_pairs())
    if place.fabric.hosts <= MOST_HOSTS:
        try:
            program = program_on(place.fabric, logical)
            whole = lockstep(program, float(size), question.start_up_s, mixer=question.mixer)
            if question.simulates or max(arrows.transfers for arrows in whole.arrows) <= MOST_ARROWS:
                rounds, routes = whole, route_rounds(whole, place.fabric, way, symmetry=question.symmetry)
        except ProgramError:
            # Too large to write out: the formula still stands, where it was all that was asked for.
            if question.simulates or exact is None:
                raise
    closed = _closed(question, place, size, exact, program)
    load = rounds_link_bytes(rounds, routes) / place.fabric.bandwidth * (place.bandwidth / size)
    for level, transport in _levels_and_transports(question):
        if level == "closed" and closed is None:
            continue
        if transport is not None:
            if say is not None:
                say(f"{logical} on {place.fabric.name}, {transport}: starting")
            timed = PACKET_LEVELS[level](_packets(question, place, rounds, router, transport, say))
        elif level == "closed":
            assert closed is not None
            timed = Timed(closed.seconds, level)
        else:
            seconds, classes = _flow(question, rounds, routes)
            timed = Timed(seconds, level, classes)
        if timed.seconds < bound * (1 - 1e-9):
            raise PhysicsError(
                f"{logical} on {place.fabric.name}: {show_seconds(timed.seconds)} is below the bandwidth bound "
                f"{show_seconds(bound)}, which no all-reduce can beat: please report this"
            )
        yield SyncRow(
            logical, place.family, place.fabric.name, place.fabric.hosts, size, place.bandwidth, question.start_up_s,
            timed.level, router, timed.seconds, closed.seconds if closed else None, exact.edition if exact else None,
            exact.formula if exact else None,
            # The closed forms charge α, not the latency of hops.
            closed is not None and (closed.is_bound or question.hop_latency_s > 0),
            paper.seconds(size, place.bandwidth, question.start_up_s) if paper and question.mixer.free else None,
            float(load.max()) if rounds.rounds else None,
            bound, rounds.rounds or (exact.rounds if exact else 0), rounds.transfers or None, timed.classes,
            load[load > 0], transport, timed.chosen_because, timed.packet, axes_of(place.fabric.builder),
        )  # fmt: skip


def _closed(
    question: SyncQuestion, place: StudiedFabric, size: int, form: ClosedForm | None, program: Program | None
) -> Mixed | None:
    """The closed form in seconds, with what ranks add."""
    if form is None:
        return None
    return mixed_seconds(form, program, place.fabric.hosts, size, place.bandwidth, question.start_up_s, question.mixer)


def _levels_and_transports(question: SyncQuestion) -> Iterator[tuple[str, str | None]]:
    """Every level once; those that know packets once for each transport."""
    for level in question.levels:
        if level in PACKET_LEVELS:
            for transport in question.transports:
                yield level, transport
        else:
            yield level, None


def _packets(
    question: SyncQuestion, place: StudiedFabric, rounds: Lockstep, router: str, transport: str, say: Say | None
) -> Packets:
    def progress(done: int, total: int) -> None:
        if say is not None:
            say(f"{rounds.name} on {place.fabric.name}, {transport}: {done} of {total} transfers and joins")

    return Packets(
        place.fabric, rounds, ROUTERS[router].make(question.seed), router, transport, question.packet, question.seed,
        question.symmetry, question.most_events, progress,
    )  # fmt: skip


def _refuse_what_is_too_large(question: SyncQuestion, work: list[tuple[StudiedFabric, int, str, str]]) -> None:
    """Before anything runs: packet-level runs that nobody would wait for."""
    too_large: list[tuple[float, str]] = []
    for place, size, logical, routing in work:
        router = router_for(place.fabric, routing).name
        rounds = lockstep(program_on(place.fabric, logical), float(size), question.start_up_s, mixer=question.mixer)
        events = max(_packets(question, place, rounds, router, name, None).events for name in question.transports)
        if events > question.most_events:
            too_large.append((events, f"{logical} on {place.fabric.name} with {show_size(size)}"))
    if too_large:
        events, worst = max(too_large)
        raise InputError(
            f"sync: {len(too_large)} of {len(work)} combinations would take more than {question.most_events:.1e} "
            f"events at packet level, {worst} about {events:.1e}: choose a smaller --size, fewer --hosts or a larger "
            "--payload, raise --most-events, or let --level auto decide"
        )


def _choices(rows: list[SyncRow]) -> list[str]:
    """What `auto` chose and why: one note for each reason, with all that it holds for."""
    reasons: dict[tuple[str, str], dict[tuple[str, str | None], list[str]]] = {}
    for row in rows:
        if row.chosen_because is not None:
            places = reasons.setdefault((row.level, row.chosen_because), {})
            names = places.setdefault((f"{row.fabric} ({row.routing})", row.transport), [])
            if row.logical not in names:
                names.append(row.logical)
    return [f"level {level} for {_listed(places)}: {why}" for (level, why), places in reasons.items()]


def _listed(places: dict[tuple[str, str | None], list[str]]) -> str:
    """Collectives by fabric; transports that have the same ones share a place."""
    together: dict[tuple[str, str], list[str]] = {}
    for (fabric, transport), names in places.items():
        together.setdefault((", ".join(names), fabric), []).append(transport or "")
    return "; ".join(
        f"{names} on {fabric} with {' and '.join(transports)}" for (names, fabric), transports in together.items()
    )


def _flow(question: SyncQuestion, rounds: Lockstep, routes: Routes | OneSender) -> tuple[float, int]:
    trace = simulate_rounds(rounds, routes, symmetry=question.symmetry)
    return trace.makespan, trace.classes


def _forms(logical: str, place: StudiedFabric, router: str) -> tuple[ClosedForm | None, ClosedForm | None]:
    """The exact closed form (or what is counted in its place) and the published one where it differs."""
    if place.fabric.builder is None:
        return None, None
    forms = closed_forms(logical, place.fabric.builder, router)
    exact = next((form for form in forms if form.edition != "paper"), None)
    return exact, next((form for form in forms if form.edition == "paper"), None)
