"""The rows of a study put together: one combination of logical and physical topology with all that is known of it.

Closed forms and flows know no transport; they stand beside every transport whose packets were simulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.report import quantity
from ropewalk.report.colours import name_of_logical
from ropewalk.sim.level import PacketFacts
from ropewalk.sync import SyncRow

DEEPEST_FIRST = ("packet", "wire", "flow", "closed")


@dataclass(frozen=True, eq=False)
class Combination:
    """One logical topology on one fabric, of one size, bandwidth, routing and transport."""

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
    way: str
    """What lines and bars of one combination differ in: routing, transport, or both."""
    transport: str | None = None
    packet: PacketFacts | None = field(default=None, repr=False)
    chosen_because: str | None = None
    axes: int | None = None
    """k: levels of a BCube, axes of a torus or a mesh."""

    @property
    def flow_s(self) -> float | None:
        return self.time_by_level.get("flow")

    @property
    def deepest_level(self) -> str:
        """The finest level at which the time is known."""
        return next(level for level in DEEPEST_FIRST if level in self.time_by_level)

    @property
    def simulated_s(self) -> float | None:
        """The time of the finest simulation, None where there was none."""
        return self.time_s if self.deepest_level != "closed" else None

    @property
    def time_s(self) -> float:
        """The simulated time, or the closed form where nothing was simulated."""
        return self.time_by_level[self.deepest_level]

    @property
    def deviation(self) -> float | None:
        """Part by which the simulation is slower than the closed form."""
        return self.simulated_s / self.closed_s - 1 if self.simulated_s is not None and self.closed_s else None

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
    routings: dict[str, set[str]] = {}
    for row in rows:
        routings.setdefault(row.fabric, set()).add(row.routing)
        key = (row.logical, row.physical, row.fabric, row.hosts, row.size_bytes, row.bandwidth, row.routing)
        together.setdefault(key, []).append(row)
    routed = any(len(names) > 1 for names in routings.values())
    return [
        _merged([row for row in group if row.transport in (None, transport)], transport, routed)
        for group in together.values()
        for transport in [*dict.fromkeys(row.transport for row in group if row.transport)] or (None,)
    ]


def _merged(group: list[SyncRow], transport: str | None, routed: bool) -> Combination:
    first = group[0]
    way = ", ".join(filter(None, (first.routing if routed or transport is None else None, transport)))
    return Combination(
        first.logical, first.physical, first.fabric, first.hosts, first.size_bytes, first.bandwidth, first.routing,
        {row.level: row.sync_time_s for row in group},
        first.closed_form_s, first.closed_form_is_bound, first.closed_form_edition, first.closed_form,
        first.paper_form_s, first.lower_bound_s, first.max_link_share, first.rounds, first.transfers,
        next((row.classes for row in group if row.classes is not None), None), first.link_load, way, transport,
        next((row.packet for row in group if row.packet is not None), None),
        next((row.chosen_because for row in group if row.chosen_because is not None), None), first.axes,
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


def several_ways(found: Iterable[Combination]) -> bool:
    """Are some fabrics routed, or their transfers carried, in more than one way, so that a label must say which?"""
    ways: dict[str, set[str]] = {}
    for row in found:
        ways.setdefault(row.fabric, set()).add(row.way)
    return any(len(names) > 1 for names in ways.values())
