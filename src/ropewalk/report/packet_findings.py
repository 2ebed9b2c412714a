"""What packets showed, in sentences: how far flows were off, and who had to pause."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.report import quantity
from ropewalk.report.combinations import Combination


def what_flows_miss(found: Sequence[Combination]) -> str:
    """The largest difference between packets and flows, and whether headers explain it."""
    pairs = [(row, row.time_by_level["packet"]) for row in found if "packet" in row.time_by_level and row.flow_s]
    if not pairs:
        return ""
    worst, seconds = max(pairs, key=lambda pair: pair[1] / (pair[0].flow_s or 1.0))
    off = quantity.percent(seconds / (worst.flow_s or 1.0) - 1, signed=True)
    said = f"Packets differ most from flows for {worst.words} with {worst.way}: {off}"
    wire = worst.time_by_level.get("wire")
    if wire is not None:
        headers = quantity.percent(wire / (worst.flow_s or 1.0) - 1, signed=True)
        said += f", of which headers and acknowledgements are {headers}"
    if worst.packet is not None and worst.packet.timeouts:
        said += f"; senders hit {quantity.count(worst.packet.timeouts)} timeouts"
    return said + "."


def what_pauses(found: Sequence[Combination]) -> str:
    """Which combination pauses the most, and how many do not pause at all."""
    runs = [(row, row.packet) for row in found if row.packet is not None]
    if not runs:
        return ""
    worst, facts = max(runs, key=lambda pair: pair[1].pauses)
    if not facts.pauses:
        lost = sum(one.drops for _, one in runs)
        return (
            f"There are no pause frames; {quantity.count(lost)} packets are dropped."
            if lost
            else "There are no pause frames and no drops."
        )
    quiet = sum(not one.pauses for _, one in runs)
    kinds = ", ".join(
        f"{quantity.count(number)} by {kind}" for kind, number in facts.pauses_by_kind().items() if number
    )
    return (
        f"Most pause frames: {worst.words} with {worst.way}, {quantity.count(facts.pauses)} ({kinds}). "
        f"{quantity.count(quiet)} of {quantity.count(len(runs))} runs have no pause frames."
    )
