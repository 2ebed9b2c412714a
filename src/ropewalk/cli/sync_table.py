"""The tables of `ropewalk sync`: levels side by side, one line per combination and transport."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console
from ropewalk.cli.sync_axes import axes_tables
from ropewalk.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from ropewalk.sync import SyncQuestion, SyncRow, SyncStudy

DEEPEST_FIRST = ("packet", "wire", "flow", "closed")


@dataclass(frozen=True)
class SyncLine:
    """One combination with one transport: its rows by level."""

    rows: dict[str, SyncRow]

    @property
    def best_known(self) -> SyncRow:
        """The row of the deepest level."""
        return next(self.rows[level] for level in DEEPEST_FIRST if level in self.rows)

    @property
    def transport(self) -> str | None:
        return self.best_known.transport

    @property
    def closed_form(self) -> str:
        """The closed form, with ≥ where it is a bound and ~ where rounds are counted."""
        row = self.best_known
        if row.closed_form_s is None:
            return "–"
        sign = "≥ " if row.closed_form_is_bound else "~ " if row.closed_form_edition == "counted" else ""
        return sign + units.show_seconds(row.closed_form_s)

    def time(self, level: str) -> str:
        return units.show_seconds(self.rows[level].sync_time_s) if level in self.rows else "–"


def print_tables(answer: SyncStudy, page: Path | None) -> None:
    out = console()
    lines = side_by_side(answer.rows)
    settings: dict[tuple[int, float], list[SyncLine]] = {}
    for line in lines:
        settings.setdefault((line.best_known.size_bytes, line.best_known.bandwidth), []).append(line)
    for (size, bandwidth), mine in settings.items():
        if any(line.transport for line in mine):
            out.print(_title(answer.question, size, bandwidth), style="bold")
            for group in _by_place(mine):
                out.print(_packet_table(group, mine))
                met = [sentence for sentence in map(_met, group) if sentence]
                if met:
                    out.print("\n".join(f" {sentence}" for sentence in met), style="dim", soft_wrap=True, end="\n\n")
        else:
            out.print(_table(answer.question, size, bandwidth, mine))
    if answer.question.axes is not None:
        for table in axes_tables(lines):
            out.print()
            out.print(table)
    for note in answer.notes:
        out.print(f"note: {note}", style="dim", soft_wrap=True)
    best = min((line.best_known for line in lines), key=lambda row: row.sync_time_s)
    bound = "at least " if best.level == "closed" and best.closed_form_is_bound else ""
    time = bound + units.show_seconds(best.sync_time_s)
    with_transport = f" with {best.transport}" if best.transport else ""
    out.print(f"fastest: {best.logical} on {best.fabric}{with_transport}, {time}", style="bold")
    if widths := _host_bandwidths(lines, best):
        out.print(f"bandwidth per host differs: {widths}", style="dim", soft_wrap=True)
    if page is None:
        out.print("add --page sync.html for charts, --json for numbers", style="dim")


def _host_bandwidths(lines: Iterable[SyncLine], best: SyncRow) -> str:
    """Of fabrics whose hosts differ in it, that of the fastest first; empty where all have the same."""
    asked = (best.hosts, best.size_bytes, best.bandwidth)
    rows = [best, *(line.best_known for line in lines)]
    # An all-reduce sends every byte N - 1 times to be reduced and N - 1 times back, over all links of all hosts.
    of_fabric = {
        row.fabric: 2 * (row.hosts - 1) / row.hosts * row.size_bytes / row.lower_bound_s
        for row in rows
        if (row.hosts, row.size_bytes, row.bandwidth) == asked
    }
    fabrics: dict[str, list[str]] = {}
    for fabric, bytes_per_s in of_fabric.items():
        fabrics.setdefault(units.show_bandwidth(bytes_per_s), []).append(fabric)
    if len(fabrics) == 1:
        return ""
    return ", ".join(f"{listed(names)} {width}" for width, names in fabrics.items())


def side_by_side(rows: Iterable[SyncRow]) -> list[SyncLine]:
    """Rows that differ in nothing but their level; those without a transport stand beside each transport."""
    found: dict[tuple[object, ...], list[SyncRow]] = {}
    for row in rows:
        key = (row.size_bytes, row.bandwidth, row.physical, row.fabric, row.routing, row.logical)
        found.setdefault(key, []).append(row)
    lines: list[SyncLine] = []
    for group in found.values():
        transports = [*dict.fromkeys(row.transport for row in group if row.transport is not None)]
        lines.extend(
            SyncLine({row.level: row for row in group if row.transport in (None, transport)})
            for transport in transports or (None,)
        )
    return lines


def _table(question: SyncQuestion, size: int, bandwidth: float, lines: list[SyncLine]) -> Table:
    """Closed form beside flows."""
    table = empty_table(_title(question, size, bandwidth))
    table.caption = (
        "error: flow against closed form (≥ a bound, ~ synchronised rounds) · hottest: load of the busiest link, in P/B"
    )
    table.add_column("physical", no_wrap=True)
    table.add_column("logical", no_wrap=True)
    for name in ("closed", "flow", "error", "hottest"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in _by_place(lines):
        for number, line in enumerate(group):
            row = line.best_known
            place = (row.fabric, f"{row.hosts} hosts", row.routing)
            table.add_row(
                place[number] if number < len(place) else "",
                row.logical,
                line.closed_form,
                line.time("flow"),
                _deviation(row),
                "–" if row.max_link_share is None else f"{row.max_link_share:.3f}",
            )
        for word in place[len(group) :]:
            table.add_row(word)
        table.add_section()
    return table


def _packet_table(group: list[SyncLine], lines: list[SyncLine]) -> Table:
    """One fabric and routing at every level; columns are those of all `lines`, so that tables stand in line."""
    levels = [level for level in ("flow", "wire", "packet") if any(level in line.rows for line in lines)]
    closed = any("closed" in line.rows for line in lines)
    row = group[0].best_known
    table = empty_table(f"{row.fabric}, {row.hosts} hosts, {row.routing}")
    table.padding = (0, 0, 0, 1)  # all columns fit into eighty characters
    logical = max(len(line.best_known.logical) for line in lines)
    transport = max(len(line.transport or "") for line in lines)
    table.add_column("logical", no_wrap=True, min_width=max(logical, len("logical")))
    table.add_column("transport", no_wrap=True, min_width=max(transport, len("transport")))
    for name in (*(["closed"] if closed else []), *levels):
        table.add_column(name, justify="right", no_wrap=True, min_width=8)
    for line in group:
        table.add_row(
            line.best_known.logical,
            line.transport or "",
            *([line.closed_form] if closed else []),
            *(line.time(level) for level in levels),
        )
    return table


def _met(line: SyncLine) -> str:
    """What packets of one line met: pauses, losses and timeouts; nothing where all went well."""
    facts = line.best_known.packet
    if facts is None:
        return ""
    counts = (("pause frames", facts.pauses), ("packets dropped", facts.drops), ("timeouts", facts.timeouts))
    found = ", ".join(f"{number:,} {what}" for what, number in counts if number)
    if not found:
        return ""
    spread = [f"\n   {kind}: {nodes}" for kind, nodes in facts.pauses_over_nodes().items() if nodes.paused]
    return f"{line.best_known.logical} with {line.transport}: {found}{''.join(spread)}"


def _title(question: SyncQuestion, size: int, bandwidth: float) -> str:
    return (
        f"one all-reduce of {units.show_size(size)}, links {units.show_bandwidth(bandwidth)}, "
        f"{units.show_seconds(question.start_up_s)} start-up per transfer"
        + (f", {units.show_seconds(question.hop_latency_s)} per hop" if question.hop_latency_s else "")
        + ("" if question.mixer.free else f", reduced by {question.mixer}")
    )


def empty_table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1),
        pad_edge=False,
    )


def _by_place(lines: list[SyncLine]) -> list[list[SyncLine]]:
    groups: dict[tuple[str, str], list[SyncLine]] = {}
    for line in lines:
        groups.setdefault((line.best_known.fabric, line.best_known.routing), []).append(line)
    return list(groups.values())


def _deviation(row: SyncRow) -> str:
    if row.level == "closed" or row.closed_form_s is None:
        return "–"
    off = row.sync_time_s / row.closed_form_s - 1
    return "0 %" if abs(off) < 5e-6 else f"{100 * off:+.3g} %"
