"""`ropewalk sync`: how should gradients be synchronised on this fabric?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import each, not_empty, split, split_fabrics, whole_number
from ropewalk.cli.screen import FIRST_RUN, JSON, PAGE, console, print_json, progress_bar, require_outputs, write_page

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.sync import SyncQuestion, SyncRow, SyncStudy


def sync_command(
    logical: str = typer.Option(
        "ps,mesh,ring,halving-doubling,hips",
        help="Logical topologies: ring, ring-one-way, ring-both-ways, mesh, ps, ps-dedicated, ps-sharded, "
        "halving-doubling, double-tree, hips.",
    ),
    physical: str = typer.Option(
        "fat-tree,leaf-spine,bcube,torus,switch",
        help="Physical topologies: families sized by --hosts, builder expressions (bcube:5,2) or fabric files.",
    ),
    hosts: str = typer.Option("64", help="Hosts of each family; several make a sweep: 16,64,256."),
    size: str = typer.Option("575MB", help="Bytes to all-reduce; several make a sweep: 64MB,575MB."),
    bandwidth: str = typer.Option("40Gbps", help="Speed of a link per direction; several make a sweep."),
    latency: str = typer.Option("10us", help="Start-up of every transfer (the α of the closed forms)."),
    hop_latency: str = typer.Option("0us", help="Latency of every link on the way, on top of --latency."),
    level: str = typer.Option("closed,flow", help="How to know the time: closed (formula), flow (simulation)."),
    routing: str = typer.Option(
        "default",
        help="default (the one that avoids collisions), shortest, ecmp, ecmp-polarised, murmur, dmodk, spray, "
        "dimension, dimension-rotated; several are compared.",
    ),
    seed: int = typer.Option(0, help="Seed of hashed routing."),
    symmetry: bool = typer.Option(True, help="Simulate one of each class of equal transfers (exact)."),
    nearest: bool = typer.Option(False, help="Where a family has no such size, take the nearest one it has."),
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Sync time of every logical topology on every physical one: closed form beside simulation.

    Example: `ropewalk sync --logical ring,hips --physical bcube:4,2,torus --hosts 64 --size 64MB --page sync.html`
    """
    from ropewalk.sync import SyncQuestion, study

    require_outputs(page)
    question = SyncQuestion(
        logical=not_empty(split(logical), "--logical"),
        physical=not_empty(split_fabrics(physical), "--physical"),
        hosts=not_empty(each(hosts, whole_number), "--hosts"),
        sizes=not_empty(each(size, units.size), "--size"),
        bandwidths=not_empty(each(bandwidth, units.bandwidth), "--bandwidth"),
        start_up_s=units.seconds(latency),
        hop_latency_s=units.seconds(hop_latency),
        levels=not_empty(split(level), "--level"),
        routing=not_empty(split(routing), "--routing"),
        seed=seed,
        symmetry=symmetry,
        nearest=nearest,
    )
    with progress_bar() as bar:
        task = bar.add_task(FIRST_RUN, total=None)
        answer = study(
            question, lambda done, total, now: bar.update(task, completed=done, total=total, description=now)
        )
    if page is not None:
        from ropewalk.report import sync_page

        write_page(page, sync_page(answer))
    if json:
        print_json(_as_json(answer))
    else:
        _print_tables(answer, page)


def _as_json(answer: SyncStudy) -> dict[str, object]:
    return {"rows": [row.as_json() for row in answer.rows], "notes": list(answer.notes)}


def _print_tables(answer: SyncStudy, page: Path | None) -> None:
    out = console()
    pairs = _side_by_side(answer.rows)
    for (size, bandwidth), table_rows in _by_setting(pairs).items():
        out.print(_table(answer.question, size, bandwidth, table_rows))
    for note in answer.notes:
        out.print(f"note: {note}", style="dim")
    best = min((_best_known(pair) for pair in pairs), key=lambda row: row.sync_time_s)
    bound = "at least " if best.level == "closed" and best.closed_form_is_bound else ""
    time = bound + units.show_seconds(best.sync_time_s)
    out.print(f"fastest: {best.logical} on {best.fabric}, {time}", style="bold")
    if page is None:
        out.print("add --page sync.html for charts, --json for numbers", style="dim")


Pair = tuple["SyncRow | None", "SyncRow | None"]
"""The closed-form row and the flow-level row of one combination."""


def _side_by_side(rows: tuple[SyncRow, ...]) -> list[Pair]:
    found: dict[tuple[object, ...], dict[str, SyncRow]] = {}
    for row in rows:
        key = (row.size_bytes, row.bandwidth, row.physical, row.fabric, row.routing, row.logical)
        found.setdefault(key, {})[row.level] = row
    return [(levels.get("closed"), levels.get("flow")) for levels in found.values()]


def _best_known(pair: Pair) -> SyncRow:
    """The simulated row, or the closed form where nothing was simulated."""
    row = pair[1] or pair[0]
    assert row is not None
    return row


def _by_setting(pairs: list[Pair]) -> dict[tuple[int, float], list[Pair]]:
    found: dict[tuple[int, float], list[Pair]] = {}
    for pair in pairs:
        row = _best_known(pair)
        found.setdefault((row.size_bytes, row.bandwidth), []).append(pair)
    return found


def _table(question: SyncQuestion, size: int, bandwidth: float, pairs: list[Pair]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"one all-reduce of {units.show_size(size)}, links {units.show_bandwidth(bandwidth)}, "
        f"{units.show_seconds(question.start_up_s)} to start a transfer"
        + (f", {units.show_seconds(question.hop_latency_s)} a hop" if question.hop_latency_s else ""),
        caption="off by: flow against closed (≥ a bound, ~ rounds in step) · hottest: load of the busiest link, in P/B",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1),
        pad_edge=False,
    )
    table.add_column("physical", no_wrap=True)
    table.add_column("logical", no_wrap=True)
    for name in ("closed", "flow", "off by", "hottest"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in _by_place(pairs):
        for number, (closed, flow) in enumerate(group):
            row = _best_known((closed, flow))
            place = (row.fabric, f"{row.hosts} hosts", row.routing)
            table.add_row(
                place[number] if number < len(place) else "",
                row.logical,
                _closed_form(row),
                units.show_seconds(flow.sync_time_s) if flow else "–",
                _deviation(flow),
                "–" if row.max_link_share is None else f"{row.max_link_share:.3f}",
            )
        for line in place[len(group) :]:
            table.add_row(line)
        table.add_section()
    return table


def _by_place(pairs: list[Pair]) -> list[list[Pair]]:
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        row = _best_known(pair)
        groups.setdefault((row.fabric, row.routing), []).append(pair)
    return list(groups.values())


def _closed_form(row: SyncRow) -> str:
    if row.closed_form_s is None:
        return "–"
    sign = "≥ " if row.closed_form_is_bound else "~ " if row.closed_form_edition == "counted" else ""
    return sign + units.show_seconds(row.closed_form_s)


def _deviation(flow: SyncRow | None) -> str:
    if flow is None or flow.closed_form_s is None:
        return "–"
    off = flow.sync_time_s / flow.closed_form_s - 1
    return "0 %" if abs(off) < 5e-6 else f"{100 * off:+.3g} %"
