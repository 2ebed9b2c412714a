"""What packets met: throughput over time at one host, the longest queue, and where pause frames went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.packet_strips import Course, StripMeasure, strips
from ropewalk.sim.level import LevelRun

CHOOSE = "Shown for"
BY_KIND, OVER_NODES = "Pause frames by kind of node", "Pause frames over nodes"
BITS = 8
THROUGHPUT = StripMeasure(
    "payload received",
    lambda facts: facts.received * BITS,
    ((1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1.0, "bps")),
    lambda facts: facts.watched_capacity * BITS,
)
QUEUE = StripMeasure("queued", lambda facts: facts.longest_queue, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


@dataclass(frozen=True)
class NetworkSection:
    """What a page of one run says about its packets; empty where none were simulated."""

    sentences: tuple[str, ...] = ()
    headings: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def network_section(run: LevelRun | None) -> NetworkSection:
    """Facts, charts and sentences for a page of one run."""
    if run is None or run.transport is None:
        return NetworkSection()
    facts = [("Level", f"{run.level}, {run.transport}")]
    if run.packet is None:
        return NetworkSection(tuple(run.sentences()), facts=tuple(facts))
    found = run.packet
    course = Course("", found, colours.ACCENT)
    one = [("", [course])]
    drawn = [(f"Throughput at host {found.watched}", throughput_over_time("packet-throughput", one))]
    if found.most_queued_bytes:
        drawn.append(("Longest switch queue", queues_over_time("packet-queues", one)))
    if found.pauses:
        drawn.append((BY_KIND, pauses_by_node("packet-pauses", one)))
        drawn.append((OVER_NODES, pauses_of_nodes("packet-nodes", one)))
    facts += [
        ("Pause frames", quantity.count(found.pauses)),
        ("Marked packets", quantity.count(found.marks)),
        ("Dropped packets", quantity.count(found.drops)),
        ("Timeouts", quantity.count(found.timeouts)),
        ("Longest queue", quantity.size(found.most_queued_bytes)),
    ]
    headings = tuple((name, chart.key) for name, chart in drawn)
    return NetworkSection(tuple(run.sentences()), headings, tuple(chart for _, chart in drawn), tuple(facts))


Views = Sequence[tuple[str, Sequence[Course]]]
AT_ONCE = " Data received out of order counts when the lost packet is retransmitted, so peaks may exceed the line."


def _bursts(one: Course) -> bool:
    return bool(one.facts.received.max(initial=0.0) > one.facts.watched_capacity)


def throughput_over_time(key: str, views: Views) -> Chart:
    """Payload that one host receives, run by run; the dashed line is what its links can bring."""
    hosts = {one.facts.watched for _, courses in views for one in courses}
    host = f"host {hosts.pop()}" if len(hosts) == 1 else "one host"
    return Chart(
        key, f"Payload received over time by {host}",
        tuple(View(label, strips(courses, THROUGHPUT)) for label, courses in views), (), CHOOSE,
        f"Payload that reaches {host} in order, averaged between samples; the dashed line is the capacity of all its "
        "links, headers included." + (AT_ONCE if any(_bursts(one) for _, own in views for one in own) else ""),
    )  # fmt: skip


def queues_over_time(key: str, views: Views) -> Chart:
    """The longest queue of any port of a switch, run by run."""
    return Chart(
        key, "Longest switch queue over time",
        tuple(View(label, strips(courses, QUEUE)) for label, courses in views), (), CHOOSE,
        "Bytes queued at the fullest switch port at each sample; peaks between samples are not shown.",
    )  # fmt: skip


def pauses_by_node(key: str, views: Views) -> Chart:
    """How often nodes of each kind were stopped, run by run."""
    kinds = colours.of_names((kind for _, courses in views for one in courses for kind in one.facts.node_kind), {})
    figures = [View(label, _pauses(courses, kinds)) for label, courses in views]
    legend = tuple(Swatch(kind, colour) for kind, colour in kinds.items())
    return Chart(
        key, "Pause frames that each node received, by run and kind of node", tuple(figures), legend, CHOOSE,
        "Each bar is one run, split by the kind of node that was paused; hover for the number of paused nodes and the "
        "maximum per node.",
    )  # fmt: skip


def pauses_of_nodes(key: str, views: Views) -> Chart:
    """How pause frames spread over nodes: every node stands where its number of frames is."""
    kinds = colours.of_names((kind for _, courses in views for one in courses for kind in one.facts.node_kind), {})
    figures = [View(label, _spread(courses, kinds)) for label, courses in views]
    legend = tuple(Swatch(kind, colour) for kind, colour in kinds.items())
    return Chart(
        key, "Pause frames of every node, by run and kind of node", tuple(figures), legend, CHOOSE,
        "Each mark is a node, or several of one kind with equally many pause frames; hover for their names.",
    )  # fmt: skip


def _spread(courses: Sequence[Course], kinds: Mapping[str, Colour]) -> Figure:
    traces = []
    for place, (kind, colour) in enumerate(kinds.items()):
        x, y, told = [], [], []
        for row, one in enumerate(courses):
            names, pauses = np.array(one.facts.node_name), one.facts.node_pauses
            mine = np.array(one.facts.node_kind) == kind
            for frames in np.unique(pauses[mine]).tolist():
                nodes = names[mine & (pauses == frames)].tolist()
                x.append(frames)
                y.append(row + ROW * ((place + 0.5) / len(kinds) - 0.5))
                told.append(f"{plain(one.label)} {kind}: {quantity.count(frames)} each at {_some(nodes)}")
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": kind,
                "x": x,
                "y": y,
                "marker": {"color": colour.light, "size": 7},
                "customdata": told,
                "hovertemplate": "%{customdata}<extra></extra>",
                "cliponaxis": False,
            }
        )
    most = max(float(one.facts.node_pauses.max(initial=0)) for one in courses)
    return {
        "data": traces,
        "layout": layout(
            max(30, 12 * len(kinds)) * len(courses) + 90,
            xaxis=_frames_axis("pause frames per node", most),
            yaxis=_rows_axis(courses),
        ),
    }


ROW = 0.7
"""Of the height of a row is used."""
MOST_NAMES = 4


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {quantity.count(more)} more" if more > 0 else "")


def _frames_axis(title: str, most: float) -> Figure:
    return value_axis(title, [most or 1.0], lambda tick: quantity.count(round(tick)), log=False, room=0.1)


def _rows_axis(courses: Sequence[Course]) -> Figure:
    return axis(
        range=[len(courses) - 0.4, -0.6],
        showgrid=False,
        tickvals=list(range(len(courses))),
        ticktext=[plain(one.label) for one in courses],
    )


def _pauses(courses: Sequence[Course], kinds: Mapping[str, Colour]) -> Figure:
    traces = []
    for kind, colour in kinds.items():
        counts, told = [], []
        for one in courses:
            mine = one.facts.node_pauses[np.array(one.facts.node_kind) == kind]
            counts.append(int(mine.sum()))
            most = quantity.count(int(mine.max(initial=0)))
            stopped = f"{int((mine > 0).sum())} of {len(mine)} nodes paused"
            told.append(
                f"{plain(one.label)} {kind}: {quantity.count(counts[-1])}; {stopped}, at most {most} times each"
            )
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": kind,
                "x": counts,
                "y": list(range(len(courses))),
                "width": ROW,
                "marker": {"color": colour.light},
                "customdata": told,
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    totals = [float(one.facts.pauses) for one in courses]
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": totals,
            "y": list(range(len(courses))),
            "text": [f"\u2002{quantity.count(int(total))}" for total in totals],
            "textposition": "middle right",
            "textfont": {"size": 12, "color": colours.MUTED.light},
            "hoverinfo": "skip",
            "cliponaxis": False,
        }
    )
    return {
        "data": traces,
        "layout": layout(
            30 * len(courses) + 90,
            barmode="stack",
            xaxis=_frames_axis("pause frames received", max(totals)),
            yaxis=_rows_axis(courses),
        ),
    }
