"""How busy the links were, and what arrived at the host that received the most."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, View, clipped, plain
from ropewalk.report.timeline import time_unit
from ropewalk.sim import Trace
from ropewalk.task import TaskKind

MOST_LINKS = 20
MOST_INSTANTS = 2_000
"""Longer curves of throughput are averaged over this many equal spans of time."""


def utilisation_chart(trace: Trace, most: int = MOST_LINKS) -> Chart | None:
    """The busiest links as bars, links of equal utilisation as one; None where nothing was sent."""
    hottest = [(name.replace("->", " → "), use) for name, use in trace.hottest_links(len(trace.link_bytes)) if use > 0]
    if not hottest:
        return None
    alike = [list(some) for _, some in groupby(hottest, key=lambda link: quantity.percent(link[1]))]
    names = [clipped(some[0][0], 40) + _others(len(some) - 1) for some in alike[:most]]
    uses = [some[0][1] for some in alike[:most]]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": uses,
        "y": list(range(len(uses))),
        "width": 0.78,
        "marker": {"color": colours.ACCENT.light, "cornerradius": 3},
        "text": [quantity.percent(use) for use in uses],
        "textposition": "outside",
        "textfont": {"size": 12, "color": colours.MUTED.light},
        "cliponaxis": False,
        "customdata": [plain(name) for name in names],
        "hovertemplate": "%{customdata}: %{text}<extra></extra>",
    }
    figure: Figure = {
        "data": [bars],
        "layout": layout(
            24 * len(uses) + 80,
            xaxis=value_axis(
                "average utilisation of the link over the run",
                [1.0 if uses[0] > 0.5 else uses[0]],
                lambda part: f"{part * 100:g}\u00a0%",
                log=False,
                room=0.12,
            ),
            yaxis=axis(
                range=[len(uses) - 0.4, -0.6],
                showgrid=False,
                tickvals=list(range(len(uses))),
                ticktext=names,
            ),
        ),
    }
    drawn = sum(len(some) for some in alike[:most])
    left = len(hottest) - drawn
    caption = f"The {quantity.count(drawn)} busiest of {quantity.count(len(hottest))} used links." if left else ""
    return Chart("utilisation", f"Utilisation of the {len(uses)} busiest links", (View("", figure),), caption=caption)


def _others(count: int) -> str:
    return f" and {quantity.count(count)} other{'' if count == 1 else 's'}" if count else ""


def busiest_receiver(trace: Trace) -> int | None:
    """The host that the most bytes were sent to."""
    graph = trace.graph
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if not len(transfer):
        return None
    received = np.bincount(graph.peer[transfer], graph.amount[transfer], minlength=trace.routes.fabric.hosts)
    return int(np.argmax(received)) if received.max() > 0 else None


def throughput_chart(trace: Trace) -> Chart | None:
    """Bits per second at the busiest receiver over time; None where rates were not recorded."""
    host = busiest_receiver(trace)
    if trace.rate is None or host is None:
        return None
    name = trace.routes.fabric.node_names[host]
    time, rate, averaged = _curve(trace, host)
    fabric = trace.routes.fabric
    capacity = float(fabric.bandwidth[fabric.link_dst == host].sum())
    scale, unit = time_unit(trace.makespan)
    curve = {
        "type": "scatter",
        "mode": "lines",
        "name": "received",
        "x": (time / scale).tolist(),
        "y": (rate * 8).tolist(),
        "customdata": [quantity.bandwidth(value) for value in rate.tolist()],
        "hovertemplate": f"from %{{x:.4g}} {unit} on: %{{customdata}}<extra></extra>",
        "line": {"color": colours.ACCENT.light, "width": 2, "shape": "hv"},
        "fill": "tozeroy",
        "fillcolor": "rgba(42,120,214,0.14)",
    }
    limit = {
        "type": "scatter",
        "mode": "lines",
        "name": "capacity",
        "x": [0.0, trace.makespan / scale],
        "y": [capacity * 8, capacity * 8],
        "hovertemplate": f"all links into the host: {quantity.bandwidth(capacity)}<extra></extra>",
        "line": {"color": colours.MUTED.light, "width": 1, "dash": "dash"},
    }
    figure: Figure = {
        "data": [curve, limit],
        "layout": layout(
            300,
            xaxis=axis(f"time in {unit}", range=[0, trace.makespan / scale * 1.005], nticks=10),
            yaxis=value_axis("received", [float(rate.max()) * 8, capacity * 8], _bits, log=False, room=0.08),
        ),
    }
    caption = f"Host {name}; the dashed line is the capacity of all its links."
    if averaged:
        caption += f" Averaged over {quantity.count(MOST_INSTANTS)} equal intervals."
    return Chart("throughput", f"Throughput over time at host {name}", (View("", figure),), caption=caption)


def _curve(trace: Trace, host: int) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """(time, bytes/s from then on), beginning at zero and ending with the run."""
    time, rate = trace.throughput(host)
    time, rate = np.concatenate([[0.0], time, [trace.makespan]]), np.concatenate([[0.0], rate, [0.0]])
    if len(time) <= MOST_INSTANTS:
        return time, rate, False
    carried = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(time))])
    grid = np.linspace(0.0, trace.makespan, MOST_INSTANTS + 1)
    mean = np.diff(np.interp(grid, time, carried)) / np.diff(grid)
    return grid, np.append(mean, 0.0), True


def _bits(per_second: float) -> str:
    return quantity.bandwidth(per_second / 8)
