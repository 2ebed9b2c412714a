"""How evenly the links of each kind were used: a box for all links between the same two kinds of node."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, View, clipped, plain

MOST_KINDS = 12
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def link_kinds(fabric: Fabric) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Links by what they join, from the names of their ends without numbers: `gpu → nvswitch`."""
    stems = [re.match("[^0-9]*", name)[0].rstrip(".-_ ") or "node" for name in fabric.node_names]  # type: ignore[index]
    known, stem = np.unique(stems, return_inverse=True)
    pair = stem[fabric.link_src] * len(known) + stem[fabric.link_dst]
    found, kind = np.unique(pair, return_inverse=True)
    names = tuple(f"{known[key // len(known)]} → {known[key % len(known)]}" for key in found.tolist())
    return names, kind.reshape(-1).astype(np.int64)


def spread_chart(fabric: Fabric, utilisation: NDArray[np.float64]) -> Chart | None:
    """Least, quartiles and most of the utilisation of each kind of link; None where that says nothing."""
    names, kind = link_kinds(fabric)
    if not utilisation.any() or len(names) > MOST_KINDS or fabric.links <= len(names):
        return None
    rows = [(name, utilisation[kind == number]) for number, name in enumerate(names)]
    fifths = np.array([np.quantile(values, QUARTERS) for _, values in rows])
    labels = [f"{name} ({quantity.count(len(values))})" for name, values in rows]
    boxes = {
        "type": "box",
        "orientation": "h",
        "y": list(range(len(rows))),
        "lowerfence": fifths[:, 0].tolist(),
        "q1": fifths[:, 1].tolist(),
        "median": fifths[:, 2].tolist(),
        "q3": fifths[:, 3].tolist(),
        "upperfence": fifths[:, 4].tolist(),
        "width": 0.5,
        "line": {"color": colours.ACCENT.light, "width": 1.5},
        "fillcolor": "rgba(42,120,214,0.18)",
        "hoverinfo": "skip",
    }
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": fifths[:, 4].tolist(),
        "y": list(range(len(rows))),
        "marker": {"color": colours.ACCENT.light, "size": 7},
        "customdata": [
            f"<b>{plain(name)}</b><br>least {quantity.percent(five[0])}, median {quantity.percent(five[2])}, "
            f"most {quantity.percent(five[4])}"
            for (name, _), five in zip(rows, fifths.tolist(), strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    high = float(utilisation.max())
    figure: Figure = {
        "data": [boxes, points],
        "layout": layout(
            34 * len(rows) + 80,
            xaxis=value_axis(
                "", [1.0 if high > 0.5 else high], lambda part: f"{part * 100:g}\u00a0%", log=False, room=0.05
            ),
            yaxis=axis(
                range=[len(rows) - 0.4, -0.6],
                showgrid=False,
                tickvals=list(range(len(rows))),
                ticktext=[clipped(label, 40) for label in labels],
            ),
        ),
    }
    return Chart(
        "spread",
        f"Spread of the utilisation of {len(rows)} kinds of link",
        (View("", figure),),
        caption="Grouped by the kinds of nodes they connect, with their number. Each row spans the least to the most "
        "utilised link; the box is the middle half, its line the median, the dot the maximum.",
    )
