"""The table of `ropewalk sync --axes`: sync time over k, the number of hosts held fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.cli.sync_table import SyncLine

Setting = tuple[int, int, float]


def axes_tables(lines: list[SyncLine]) -> list[Table]:
    """One for each number of hosts, size and speed."""
    settings: dict[Setting, list[SyncLine]] = {}
    for line in lines:
        row = line.best_known
        settings.setdefault((row.hosts, row.size_bytes, row.bandwidth), []).append(line)
    return [_table(setting, mine) for setting, mine in settings.items() if any(one.best_known.axes for one in mine)]


def _table(setting: Setting, lines: list[SyncLine]) -> Table:
    from ropewalk.cli.sync_table import empty_table

    hosts, size, bandwidth = setting
    levels = list(dict.fromkeys(line.best_known.level for line in lines))
    table = empty_table(
        f"sync time over k at {hosts:,} hosts, {units.show_size(size)}, links {units.show_bandwidth(bandwidth)} "
        f"({' and '.join(levels)})"
    )
    table.padding = (0, 0, 0, 1)  # the default five fit into eighty characters
    table.caption = "k: levels of a bcube, axes of a torus or mesh; n^k hosts"
    logical = list(dict.fromkeys(line.best_known.logical for line in lines))
    table.add_column("physical", no_wrap=True)
    for name in ("k", "n", *logical):
        table.add_column(name, justify="right", no_wrap=True)
    before: str | None = None
    for (physical, axes), times in _by_place(lines).items():
        if before is not None and physical != before:
            table.add_section()
        table.add_row(
            "" if physical == before else physical,
            *(("–", "–") if axes is None else (str(axes), str(round(hosts ** (1 / axes))))),
            *(times.get(name, "–") for name in logical),
        )
        before = physical
    return table


def _by_place(lines: list[SyncLine]) -> dict[tuple[str, int | None], dict[str, str]]:
    """Times of every logical topology on each family with each k, by routing and transport where there are several."""
    rows = [line.best_known for line in lines]
    routed = len({(row.physical, row.routing) for row in rows}) > len({row.physical for row in rows})
    found: dict[tuple[str, int | None], dict[str, str]] = {}
    for line, row in zip(lines, rows, strict=True):
        words = (row.physical, row.routing if routed else "", line.transport or "")
        times = found.setdefault((", ".join(filter(None, words)), row.axes), {})
        times[row.logical] = line.closed_form if row.level == "closed" else line.time(row.level)
    return dict(
        sorted(found.items(), key=lambda place: list(dict.fromkeys(name for name, _ in found)).index(place[0][0]))
    )
