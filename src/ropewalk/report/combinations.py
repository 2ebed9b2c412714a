"""The rows of a study put together: one combination of logical and physical topology with all that is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.report import quantity
from ropewalk.report.colours import name_of_logical
from ropewalk.sync import SyncRow


@dataclass(frozen=True, eq=False)
class Combination:
    """One logical topology on one fabric, of one size, bandwidth and routing."""

    logical: str
    physical: str
    fabric: str
    hosts: int
    size_bytes: int
    bandwidth: float
    routing: str
    time_by_level: dict[str, float]
    closed_s: float | None
    closed_is_bound: bool
    edition: str | None
    formula: str | None
    paper_s: float | None
    bound_s: float
    max_link_share: float | None
    rounds: int
    transfers: int | None
    classes: int | None
    link_load: NDArray[np.float64] = field(repr=False)

    @property
    def flow_s(self) -> float | None:
        return self.time_by_level.get("flow")

    @property
    def time_s(self) -> float:
        """The simulated time, or the closed form where nothing was simulated."""
        return self.flow_s if self.flow_s is not None else next(iter(self.time_by_level.values()))

    @property
    def deviation(self) -> float | None:
        """Part by which the simulation is slower than the closed form."""
        return self.flow_s / self.closed_s - 1 if self.flow_s is not None and self.closed_s else None

    @property
    def words(self) -> str:
        return f"{name_of_logical(self.logical)} on {self.fabric}"

    @property
    def closed_words(self) -> str:
        """The closed form in seconds, with ≥ where it is only a bound."""
        if self.closed_s is None:
            return "–"
        return f"{'≥ ' if self.closed_is_bound else ''}{quantity.seconds(self.closed_s)}"


def combinations(rows: Iterable[SyncRow]) -> list[Combination]:
    """Rows that differ in nothing but their level are one combination; the order of the study is kept."""
    together: dict[tuple[object, ...], list[SyncRow]] = {}
    for row in rows:
        key = (row.logical, row.physical, row.fabric, row.hosts, row.size_bytes, row.bandwidth, row.routing)
        together.setdefault(key, []).append(row)
    return [_merged(group) for group in together.values()]


def _merged(group: list[SyncRow]) -> Combination:
    first = group[0]
    return Combination(
        first.logical, first.physical, first.fabric, first.hosts, first.size_bytes, first.bandwidth, first.routing,
        {row.level: row.sync_time_s for row in group},
        first.closed_form_s, first.closed_form_is_bound, first.closed_form_edition, first.closed_form,
        first.paper_form_s, first.lower_bound_s, first.max_link_share, first.rounds, first.transfers,
        next((row.classes for row in group if row.classes is not None), None), first.link_load,
    )  # fmt: skip


def at_the_largest(found: Iterable[Combination]) -> list[Combination]:
    """Of a sweep, the combinations to compare with each other: most hosts of each family, most bytes, first speed."""
    rows = list(found)
    if not rows:
        return []
    size = max(row.size_bytes for row in rows)
    speed = rows[0].bandwidth
    rows = [row for row in rows if row.size_bytes == size and row.bandwidth == speed] or rows
    hosts: dict[str, int] = {}
    for row in rows:
        hosts[row.physical] = max(hosts.get(row.physical, 0), row.hosts)
    return [row for row in rows if row.hosts == hosts[row.physical]]


def several_routings(found: Iterable[Combination]) -> bool:
    """Is some fabric of the study routed in more than one way, so that a label must say which?"""
    ways: dict[str, set[str]] = {}
    for row in found:
        ways.setdefault(row.fabric, set()).add(row.routing)
    return any(len(names) > 1 for names in ways.values())
