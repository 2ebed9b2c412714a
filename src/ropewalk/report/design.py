"""The page of a plan: the wiring drawn, the traffic, the load of links, the step's timeline, and all comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ropewalk.codesign.answer import PlanAnswer
from ropewalk.codesign.design import Design
from ropewalk.device.held import device_in_words
from ropewalk.report import quantity
from ropewalk.report.design_charts import (
    HEAT_LEGEND,
    baseline_chart,
    heat_charts,
    heat_in_words,
    history_chart,
    load_chart,
    money,
)
from ropewalk.report.design_wiring import draw_wiring
from ropewalk.report.page import render
from ropewalk.report.rank_groups import by_block, rank_groups
from ropewalk.report.step import drawn_ranks
from ropewalk.report.step_timeline import step_timeline
from ropewalk.strategy.seating import Seat

MOST_PINNED = 12
"""Servers of pinned layers that are listed in one row."""
MOST_SERVERS_LISTED = 8
MOST_SERVERS_DRAWN = 6


@dataclass(frozen=True)
class SeatRow:
    """Neighbouring layers that sit alike."""

    layers: str
    manner: str
    servers: str


ABOUT_EQUAL = 0.05
"""Parts by which costs may differ and still be about the same."""


def design_page(answer: PlanAnswer) -> str:
    """One self-contained HTML page for a plan."""
    design, timed = answer.design, answer.timed
    run, found = timed.run, timed.statistics
    drawn = drawn_ranks(rank_groups(run, found, noun="server"))
    if len(drawn.names) > MOST_SERVERS_DRAWN:
        drawn = by_block(run.step.ranks, "server", MOST_SERVERS_DRAWN)
    sums, pairs = answer.sent()
    charts, traffic = [baseline_chart(design), history_chart(design)], []
    if sums.any() or pairs.any():
        traffic = heat_charts(sums, pairs)
        charts += [*traffic, load_chart(*answer.carried())]
    return render(
        "design.html",
        title=f"{design.question.model} on {design.wiring.servers} servers: a plan",
        charts=charts,
        traffic=traffic,
        heat_legend=HEAT_LEGEND,
        heat_words=heat_in_words(len(sums)),
        headline=headline(design),
        lead=comparison_in_words(design),
        facts=_facts(design),
        design=design,
        drawing=draw_wiring(design.wiring),
        seats=seat_rows(design),
        timeline=step_timeline(run, drawn),
        notes=[*design.notes, *_reading(design)],
        money=money,
    )


def headline(design: Design) -> str:
    servers = quantity.count(design.wiring.servers)
    return f"A step of {design.question.model} on {servers} servers takes {quantity.seconds(design.step_time_s)}"


def comparison_in_words(design: Design) -> str:
    """How networks of about the same cost compare, and the fastest one with what it costs."""
    if not design.baselines:
        return "No comparison was made."
    cost = {name: compared.cost / design.cost for name, compared in design.baselines.items()}
    ordered = sorted(design.baselines, key=lambda name: design.baselines[name].step_time_s)
    equal = [_against(design, name) for name in ordered if abs(cost[name] - 1) <= ABOUT_EQUAL]
    sentences = [f"At about the same cost, {' and '.join(equal)}."] if equal else []
    fastest = ordered[0]
    if design.speed_up(fastest) < 1:
        gain, price = quantity.times(1 / design.speed_up(fastest)), quantity.times(cost[fastest])
        sentences.append(f"The fastest network, {fastest}, is {gain} faster at {price} the cost.")
    else:
        sentences.append("No network that it was compared with is faster.")
    return " ".join(sentences)


def _against(design: Design, name: str) -> str:
    ratio = design.speed_up(name)
    return (
        f"{name} is {quantity.times(ratio)} slower" if ratio >= 1 else f"{name} is {quantity.times(1 / ratio)} faster"
    )


def _facts(design: Design) -> list[tuple[str, str]]:
    asked, wiring = design.question, design.wiring
    step = max(design.step_time_s, 1e-300)
    idle = max(0.0, design.step_time_s - design.compute_s - design.exposed_communication_s)

    def part(seconds: float) -> str:
        return f"{quantity.seconds(seconds)} ({quantity.percent(seconds / step)})"

    return [
        ("Step time", quantity.seconds(design.step_time_s)),
        ("Interval of the step time", design.expected.said()),
        ("Compute, mean over servers", part(design.compute_s)),
        ("Exposed communication", part(design.exposed_communication_s)),
        ("Waiting for other servers", part(idle)),
        ("Cost of the network", money(design.cost)),
        ("Servers", f"{quantity.count(wiring.servers)} with {asked.gpus_per_server} × {device_in_words(asked.device)}"),
        ("Ports per server", f"{wiring.degree} × {quantity.bandwidth(wiring.bandwidth)}"),
        ("Cables", "duplex" if wiring.duplex else "simplex"),
        ("Ports for rings, for point-to-point", f"{wiring.degree_sums}, {wiring.degree_pairs}"),
        ("All-reduce bytes on the wire", quantity.size(design.allreduce_bytes)),
        ("Model-parallel bytes", quantity.size(design.mp_bytes)),
        ("Bandwidth tax", f"{design.tax:.3f}"),
        ("Hops per route", f"{design.routes.mean_hops:.2f} on average, {design.routes.max_hops} at most"),
        ("Micro-batches per step", quantity.count(design.micro_batches)),
        ("Seed", str(asked.seed)),
    ]


def seat_rows(design: Design) -> list[SeatRow]:
    """Seats of the layers: neighbours with equal seats share a row, and so do neighbours pinned to one server each."""
    rows = []
    pairs = zip(design.layers, design.seating.seats, strict=True)
    for _, some in groupby(pairs, key=lambda pair: "pinned" if pair[1].manner.value == "pinned" else pair[1]):
        names, seats = zip(*some, strict=True)
        named = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} layers)"
        homes = [seat.servers[0] for seat in seats]
        if len(set(homes)) > 1 and seats[0].manner.value == "pinned":
            listed = ", ".join(map(str, homes[:MOST_PINNED])) + (", …" if len(homes) > MOST_PINNED else "")
            rows.append(SeatRow(named, "each on one server", f"{len(set(homes))}: {listed}"))
            continue
        rows.append(SeatRow(named, MANNERS[seats[0].manner.value], _servers_in_words(seats[0], design.wiring.servers)))
    return rows


MANNERS = {
    "sample": "replicated, each server computes a part of the batch",
    "pinned": "on one server",
    "columns": "split by output, a part on each server",
    "tensor": "split as in Megatron-LM, a part of the weights on each server",
    "expert": "each server holds a part of the batch and of the experts",
}


def _servers_in_words(seat: Seat, servers: int) -> str:
    if seat.degree == servers:
        return f"all {servers}"
    if seat.degree <= MOST_SERVERS_LISTED:
        return ", ".join(map(str, seat.servers))
    first, second = seat.servers[:2]
    return f"{seat.degree}: {first}, {second}, … , {seat.servers[-1]}"


def _reading(design: Design) -> list[str]:
    """What is assumed, where that is not a fact of the run."""
    return [
        f"The step was simulated transfer by transfer at flow level; collectives: {design.collectives}, all rings of a "
        f"group at once, and each round pays {quantity.seconds(design.wiring.latency)} per hop.",
        "The GPUs of a server share its part of a layer.",
        "The bandwidth tax is bytes carried by links (relayed bytes count on every link of their path) over bytes "
        "requested.",
        f"Costs are those of the price list {design.question.prices}.",
    ]
