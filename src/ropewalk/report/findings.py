"""What a study found, in sentences: who is fastest, what routing costs, how well simulation and formula agree."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.report import quantity
from ropewalk.report.colours import name_of_logical
from ropewalk.report.combinations import Combination, at_the_largest, several_ways
from ropewalk.report.packet_findings import what_flows_miss, what_pauses

CLOSE = 0.01
"""Combinations within this part of the fastest are as good as it is."""
AGREES = 1e-3


def headline(found: Sequence[Combination]) -> str:
    """The finding in one sentence: `HiPS on torus:8x8 is fastest: 56.88 ms, 1.7 % ahead of ring on torus:8x8`."""
    rows = at_the_largest(found)
    if not rows:
        return "This study has no combinations"
    best = min(rows, key=lambda row: row.time_s)
    name = best.words[0].upper() + best.words[1:]
    if several_ways(rows):
        name += f" with {best.way}"
    if len(rows) == 1:
        return f"{name} takes {quantity.seconds(best.time_s)}"
    rival = _yardstick(rows, best)
    ratio = rival.time_s / best.time_s
    if ratio < 1 + 5e-5:
        gap = f"as fast as {rival.words}"
    elif ratio < 1.095:
        gap = f"{quantity.percent(ratio - 1)} ahead of {rival.words}"
    else:
        gap = f"{quantity.times(ratio)} faster than {rival.words}"
    if (wider := rival.bound_s / best.bound_s) > 1 + CLOSE:
        gap += f", whose hosts have {quantity.times(wider)} less bandwidth"
    if several_ways(rows) and rival.words == best.words:
        gap += f" with {rival.way}"
    return f"{name} is fastest{_setting(best, found)}: {quantity.seconds(best.time_s)}, {gap}"


def _setting(best: Combination, found: Sequence[Combination]) -> str:
    """Where a study sweeps over sizes or speeds, the one that the headline speaks of."""
    parts = []
    if len({row.size_bytes for row in found}) > 1:
        parts.append(f" for {quantity.size(best.size_bytes)}")
    if len({row.bandwidth for row in found}) > 1:
        parts.append(f" at {quantity.bandwidth(best.bandwidth)}")
    return "".join(parts)


def _yardstick(rows: Sequence[Combination], best: Combination) -> Combination:
    """What people have: a ring on the first fabric of the study; otherwise the slowest, or the next best."""
    others = [row for row in rows if row is not best]
    rings = [row for row in rows if row.logical == "ring"]
    if rings and rings[0] is not best:
        return rings[0]
    return min(others, key=lambda row: row.time_s) if rings else max(others, key=lambda row: row.time_s)


def remarks(found: Sequence[Combination]) -> list[str]:
    """Further sentences under the headline; each appears only where the study can carry it."""
    sentences = (
        _equals(found), _routing(found), _agreement(found), what_flows_miss(found), what_pauses(found), _growth(found),
    )  # fmt: skip
    return [sentence for sentence in sentences if sentence]


def _equals(found: Sequence[Combination]) -> str:
    rows = at_the_largest(found)
    best = min(rows, key=lambda row: row.time_s, default=None)
    near = [row for row in rows if best and row is not best and row.time_s <= best.time_s * (1 + CLOSE)]
    if not best or not near:
        return ""
    words = list(dict.fromkeys(row.words for row in near if row.words != best.words))
    if not words:
        return ""
    listed = ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
    return f"Within {CLOSE * 100:.0f}\u00a0% of the fastest: {listed}."


def _routing(found: Sequence[Combination]) -> str:
    """The largest price of a routing: the same program on the same fabric, on other routes."""
    ways: dict[tuple[object, ...], list[Combination]] = {}
    for row in found:
        ways.setdefault((row.logical, row.fabric, row.size_bytes, row.bandwidth, row.transport), []).append(row)
    pairs = [
        (min(group, key=lambda row: row.time_s), max(group, key=lambda row: row.time_s)) for group in ways.values()
    ]
    good, bad = max(pairs, key=lambda pair: pair[1].time_s / pair[0].time_s, default=(None, None))
    if good is None or bad is None or good.routing == bad.routing:
        return ""
    if bad.time_s < good.time_s * (1 + AGREES):
        return "Routing makes no difference: no combination changes by more than 0.1 %."
    price = quantity.percent(bad.time_s / good.time_s - 1, signed=True)
    return (
        f"Routing matters most for {bad.words}: {quantity.seconds(bad.time_s)} with {bad.routing}, "
        f"{quantity.seconds(good.time_s)} with {good.routing} ({price})."
    )


def _agreement(found: Sequence[Combination]) -> str:
    """How far the simulation is from closed forms that claim to be the time itself, not a bound."""
    flows = [row for row in found if row.deepest_level == "flow"]  # packets cost more than any closed form says
    exact = [row for row in flows if row.deviation is not None and not row.closed_is_bound and row.edition == "exact"]
    if not exact:
        return ""
    worst = max(exact, key=lambda row: abs(row.deviation or 0.0))
    largest = abs(worst.deviation or 0.0)
    if largest > AGREES:
        far = quantity.percent(worst.deviation or 0.0, signed=True)
        return f"The simulation is farthest from its exact closed form for {worst.words}: {far}."
    if len(exact) == 1:
        subject = "The simulation agrees with the closed form"
    else:
        subject = f"Simulation and closed form agree on all {len(exact)} combinations with an exact one"
    return f"{subject}, to rounding." if largest < 1e-6 else f"{subject}, within {quantity.percent(largest)}."


def _growth(found: Sequence[Combination]) -> str:
    """How the fastest combination grows with the number of hosts."""
    rows = at_the_largest(found)
    if not rows:
        return ""
    best = min(rows, key=lambda row: row.time_s)
    same = [
        row
        for row in found
        if (row.logical, row.physical, row.way, row.size_bytes, row.bandwidth)
        == (best.logical, best.physical, best.way, best.size_bytes, best.bandwidth)
    ]
    small = min(same, key=lambda row: row.hosts)
    if small.hosts == best.hosts:
        return ""
    change = quantity.percent(best.time_s / small.time_s - 1, signed=True)
    return (
        f"From {quantity.count(small.hosts)} to {quantity.count(best.hosts)} hosts, {name_of_logical(best.logical)} on "
        f"{best.physical} goes from {quantity.seconds(small.time_s)} to {quantity.seconds(best.time_s)} ({change})."
    )
