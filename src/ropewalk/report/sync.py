"""The page of a synchronisation study: who is fastest, by how much, and why."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.fabric import Fabric
from ropewalk.report import colours, quantity
from ropewalk.report.combinations import Combination, at_the_largest, combinations
from ropewalk.report.drawing import Drawing, draw, size_in_words
from ropewalk.report.findings import headline, remarks
from ropewalk.report.page import render
from ropewalk.report.sync_bars import sync_bars
from ropewalk.report.sync_curves import load_chart, scaling_charts
from ropewalk.report.sync_levels import levels_chart, packet_charts
from ropewalk.sync import SyncQuestion, SyncStudy
from ropewalk.words import listed

MOST_DRAWN_NODES = 5_000
MOST_DRAWN_LINKS = 6_000
"""Of one fabric of a study: the drawing is small, and a page holds several."""

LEVEL_NAMES = {
    "closed": "closed form", "flow": "flow level", "wire": "flows with headers", "packet": "packet level",
    "auto": "automatic level",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """One fabric of the study, drawn, or the reason why it is not."""

    name: str
    size: str
    drawing: Drawing | None
    reason: str = ""


def sync_page(study: SyncStudy) -> str:
    """One self-contained HTML page for a study.

    >>> from ropewalk.sync import SyncQuestion, SyncStudy
    >>> "<h1>This study has no combinations</h1>" in sync_page(SyncStudy(SyncQuestion(), (), ()))
    True
    """
    found = combinations(study.rows)
    bars, loads = (sync_bars(found), load_chart(found)) if found else (None, None)
    scaling = scaling_charts(found, over_axes=study.question.axes is not None)
    levels, packets = levels_chart(found), packet_charts(found)
    compared = at_the_largest(found)
    best = min(compared, key=lambda row: row.time_s, default=None)
    return render(
        "sync.html",
        title=f"Sync time: {headline(found)}",
        charts=[
            chart
            for chart in (bars, levels, *(chart for *_, chart in packets), *(chart for _, chart in scaling), loads)
            if chart
        ],
        packets=[(heading, note, chart.key) for heading, note, chart in packets],
        headline=headline(found),
        question=_in_words(study.question, found),
        facts=_facts(study.question, found),
        remarks=remarks(found),
        scaling=[(words, chart.key) for words, chart in scaling],
        rows=found,
        best=best,
        sweeps_hosts=len({row.hosts for row in found}) > 1,
        sweeps_size=len({row.size_bytes for row in found}) > 1,
        sweeps_bandwidth=len({row.bandwidth for row in found}) > 1,
        has_packets=any(row.transport for row in found),
        logical_name=colours.name_of_logical,
        quantity=quantity,
        pictures=[_picture(fabric) for fabric in study.fabrics],
        notes=[*study.notes, *_reading(found)],
    )


def _in_words(question: SyncQuestion, found: list[Combination]) -> str:
    sizes = listed([quantity.size(size) for size in question.sizes], None)
    hosts = listed([quantity.count(number) for number in sorted({row.hosts for row in found})] or ["no"], None)
    speeds = listed([quantity.bandwidth(speed) for speed in sorted({row.bandwidth for row in found})], None)
    return (
        f"How long does one all-reduce of {sizes} take over {hosts} hosts"
        + (f" with links of {speeds}" if speeds else "")
        + f", with a start-up latency of {quantity.seconds(question.start_up_s)} per transfer?"
    )


def _facts(question: SyncQuestion, found: list[Combination]) -> list[tuple[str, str]]:
    routings = list(dict.fromkeys(row.routing for row in found)) or list(question.routing)
    facts = [
        ("Size", listed([quantity.size(size) for size in question.sizes], None)),
        ("Hosts", listed([quantity.count(number) for number in sorted({row.hosts for row in found})], None)),
        (
            "Link bandwidth",
            listed([quantity.bandwidth(speed) for speed in sorted({row.bandwidth for row in found})], None),
        ),
        ("Start-up latency", quantity.seconds(question.start_up_s)),
        ("Latency per hop", quantity.seconds(question.hop_latency_s) if question.hop_latency_s else "none"),
        ("Routing", listed(routings, None)),
        ("Levels", listed([LEVEL_NAMES[one] for one in question.levels], None)),
        ("Transports", listed(list(dict.fromkeys(row.transport for row in found if row.transport)), None)),
        ("Seed", str(question.seed)),
    ]
    return [(name, value) for name, value in facts if value]


def _reading(found: list[Combination]) -> list[str]:
    """How to read what is on the page; only what occurs there."""
    notes = [
        "P/B is the time to send the whole size over one host link. The hottest link carries this multiple of the size "
        "over all rounds, which bounds the time from below; rounds with different hottest links add to it.",
        "The lower bound holds for every all-reduce on these hosts: each byte is sent N−1 times to be reduced and N−1 "
        "times to be broadcast, and no host sends faster than all its links together.",
    ]
    if any(row.closed_is_bound for row in found):
        notes.append(
            "≥ marks a closed form that is only a lower bound: it ignores hop latency and hash collisions, which "
            "only add time."
        )
    if any(row.edition == "counted" for row in found):
        notes.append(
            "“counted” marks combinations without a formula: the hottest link of each round, summed over the rounds."
        )
    if any(row.classes is not None and row.classes < (row.transfers or 0) for row in found):
        notes.append(
            "Simulated classes are the tasks that remain after merging identical ones; times are those of the full run."
        )
    return notes


def _picture(fabric: Fabric) -> Picture:
    """A fabric of the study, drawn while it has at most some thousand nodes."""
    size = size_in_words(fabric)
    if fabric.nodes > MOST_DRAWN_NODES:
        reason = f"Not drawn: it has more than {quantity.count(MOST_DRAWN_NODES)} nodes."
        return Picture(fabric.name, size, None, reason)
    return Picture(fabric.name, size, draw(fabric, most_links=MOST_DRAWN_LINKS))
