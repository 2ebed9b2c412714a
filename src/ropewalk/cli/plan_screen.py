"""What `ropewalk plan` shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.codesign.design import Design
    from ropewalk.training import TrainingAnswer

MANNERS = {
    "sample": "data-parallel on",
    "pinned": "pinned to",
    "columns": "split by output over",
    "tensor": "tensor-parallel on",
    "expert": "expert-parallel on",
}
"""How layers are placed, before a number of servers."""
ENDED = {"rounds": "all rounds used", "converged": "no better strategy for the last wiring"}


def print_at_level(design: Design, closer: TrainingAnswer) -> None:
    """What a finer simulation of the network says of the plan."""
    seconds = closer.statistics.step_time_s
    change = seconds / design.step_time_s - 1
    say = console().print
    say(
        f"at level {closer.question.network.level.level}: {units.show_seconds(seconds)} per step, "
        f"{units.show_percent(abs(change), 2)} {'more' if change >= 0 else 'less'} than at flow level",
        soft_wrap=True,
    )
    for note in closer.notes:
        say(note, soft_wrap=True)


def print_design(design: Design, *, hint: bool) -> None:
    from ropewalk.fabric.wiring import rings_in_words

    say = console().print
    asked, wiring = design.question, design.wiring
    ports = f"{wiring.degree} x {units.show_bandwidth(wiring.bandwidth)}"
    say(
        f"{asked.model} on {wiring.servers} servers with {ports} ({'duplex' if wiring.duplex else 'simplex'}): "
        f"{units.show_seconds(design.step_time_s)} per step",
        style="bold",
        soft_wrap=True,
    )
    say(_table(design))
    for line in rings_in_words(wiring):
        say(line, soft_wrap=True)
    if design.collectives != "ring":
        say(f"collectives: {design.collectives}, faster than rings; rings for all others", soft_wrap=True)
    say(
        f"ports: {wiring.degree_sums} for rings, {wiring.degree_pairs} for pairs; routes: "
        f"{design.routes.mean_hops:.2f} hops on average, {design.routes.max_hops} at most; {_relayed(design.tax)}",
        soft_wrap=True,
    )
    say(
        f"traffic per step: {units.show_size(design.allreduce_bytes)} of all-reduce, "
        f"{units.show_size(design.mp_bytes)} point-to-point",
        soft_wrap=True,
    )
    seats = [f"{count} {what}" for what, count in _seats(design).items()]
    say(f"layers: {', '.join(seats)}", soft_wrap=True)
    say(f"costs: {design.cost_source}", soft_wrap=True)
    say(f"interval: {design.expected.said()}", soft_wrap=True)
    say(_search_in_words(design), soft_wrap=True)
    for note in design.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)
    if hint:
        say(
            "add --plan plan.json to save it, --page plan.html for charts, --patch and --tables to build it",
            style="dim",
        )


def _search_in_words(design: Design) -> str:
    """The starts in one number, then whatever was the best so far."""
    starts = [turn.seconds for turn in design.history if turn.plane == "start"]
    better = [turn for turn in design.history if turn.best and turn.plane != "start"]
    steps = [f"best of {len(starts)} starts {units.show_seconds(min(starts))}"] if starts else []
    steps += [f"{turn.plane} {units.show_seconds(turn.seconds)}" for turn in better]
    how = ENDED.get(design.ended, design.ended)
    return f"search ({how}, {len(design.history)} candidates): {' -> '.join(steps)}"


def _table(design: Design) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("network", "step", "vs. plan", "cost", "vs. plan (cost)"):
        table.add_column(name, justify="left" if name == "network" else "right", no_wrap=True)
    table.add_row("plan", units.show_seconds(design.step_time_s), "", f"${design.cost:,.0f}", "")
    for name, row in design.baselines.items():
        table.add_row(
            name,
            units.show_seconds(row.step_time_s),
            f"{design.speed_up(name):.2f} x",
            f"${row.cost:,.0f}",
            f"{row.cost / design.cost:.2f} x",
        )
    return table


def _relayed(tax: float) -> str:
    return f"relaying adds {units.show_percent(tax - 1, 0)} traffic (tax {tax:.2f})"


def _seats(design: Design) -> dict[str, int]:
    """How many layers sit in which manner on how many servers."""
    found: dict[str, int] = {}
    for seat in design.seating.seats:
        what = f"{MANNERS[seat.manner.value]} {seat.degree} server{'s' * (seat.degree != 1)}"
        found[what] = found.get(what, 0) + 1
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))
