"""A design in charts: who sends how much to whom, how full links get, how it was found, what it is better than."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.arrays import Floats
from ropewalk.codesign.design import Design
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, seconds_axis, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.ranking import ranking

MOST_CELLS = 256
"""Rows of a heat map; more servers share cells."""
MOST_STEPS = 2_000
"""Points of a curve."""


def heat_charts(sums: Floats, pairs: Floats) -> list[Chart]:
    """Bytes of a step from server to server, all-reduces and model-parallel transfers apart, each to its own scale."""
    maps = (("traffic-rings", sums, "all-reduce"), ("traffic-pairs", pairs, "model-parallel"))
    return [_heat_chart(key, matrix, label) for key, matrix, label in maps if matrix.any()]


HEAT_LEGEND = tuple(
    Swatch(word, colour)
    for word, colour in zip(("little", "half of the maximum", "maximum"), colours.HEAT, strict=True)
)


def heat_in_words(servers: int) -> str:
    """How the maps are read."""
    shared = -(-servers // MOST_CELLS)
    more = f" A cell is the sum over {shared} by {shared} servers." if shared > 1 else ""
    return f"Rows send, columns receive. All-reduce traffic is shown on the rings that carry it.{more}"


def _heat_chart(key: str, matrix: Floats, label: str) -> Chart:
    """One map; its title says how much the fullest cell is."""
    cells = _binned(matrix)
    side, high = len(cells), float(cells.max())
    ends = {"showgrid": False, "constrain": "domain", "range": [-0.5, side - 0.5], **_server_ticks(len(matrix))}
    down = ends | {"range": [side - 0.5, -0.5]}
    figure: Figure = {
        "data": [_heat(cells, high, label, "server" if side == len(matrix) else "cell")],
        "layout": layout(
            480,
            margin={"l": 8, "r": 8, "t": 40, "b": 48},
            xaxis=axis("to server", **ends),
            yaxis=axis("from server", **down, scaleanchor="x"),
            annotations=[
                {
                    "text": f"{label}: {quantity.size(high)} at most", "xref": "x domain", "yref": "paper",
                    "x": 0.5, "y": 1.0, "yshift": 5, "yanchor": "bottom", "showarrow": False,
                    "font": {"size": 13, "color": palette.INK.light},
                }
            ],
        ),
    }  # fmt: skip
    return Chart(key, f"Bytes of {label} from server to server", (View("", figure),))


def _server_ticks(servers: int) -> dict[str, Any]:
    """Ticks at round numbers of servers, in the cells that hold them.

    >>> _server_ticks(4)
    {'tickvals': [0.0, 1.0, 2.0, 3.0], 'ticktext': ['0', '1', '2', '3']}
    >>> _server_ticks(1024)["tickvals"][:2], _server_ticks(1024)["ticktext"][:2]
    ([-0.375, 49.625], ['0', '200'])
    """
    shared = -(-servers // MOST_CELLS)
    step = next(size for size in (times * 10**power for power in count() for times in (1, 2, 5)) if servers <= 8 * size)
    numbers = range(0, servers, step)
    return {
        "tickvals": [(number + 0.5) / shared - 0.5 for number in numbers],
        "ticktext": [str(number) for number in numbers],
    }


def _heat(cells: Floats, high: float, label: str, one: str) -> Figure:
    """The cells of one map."""
    ramp = colours.HEAT
    gap = 1 if len(cells) <= 64 else 0
    return {
        "type": "heatmap",
        "z": [[value if value > 0 else None for value in row] for row in cells.tolist()],
        "zmin": 0.0,
        "zmax": high,
        "colorscale": [[at / (len(ramp) - 1), colour.light] for at, colour in enumerate(ramp)],
        "showscale": False,
        "hovertemplate": f"{one} %{{y}} to {one} %{{x}}: %{{z:.4s}}B {plain(label)}<extra></extra>",
        "xgap": gap,
        "ygap": gap,
    }


def _binned(matrix: Floats) -> Floats:
    shared = -(-len(matrix) // MOST_CELLS)
    if shared == 1:
        return matrix
    starts = np.arange(0, len(matrix), shared)
    return np.asarray(np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1), np.float64)


def load_chart(sums: NDArray[np.float64], pairs: NDArray[np.float64]) -> Chart:
    """Which part of the links carries at most so many bytes of a step: sums, pairs and both together."""
    curves = [
        ("all bytes", palette.INK, sums + pairs, "line"),
        ("all-reduce", colours.SUMS, sums, "line"),
        ("model-parallel", colours.PAIRS, pairs, "line"),
    ]
    drawn = [curve for curve in curves if curve[2].any()]
    if len(drawn) == 2:  # of one kind alone: all bytes are those of this kind
        drawn = drawn[1:]
    high = float((sums + pairs).max(initial=0.0)) or 1.0
    data = []
    for name, colour, values, _ in drawn:
        load = np.sort(values)
        if len(load) > MOST_STEPS:
            load = load[np.linspace(0, len(load) - 1, MOST_STEPS).astype(np.int64)]
        part = np.arange(1, len(load) + 1) / len(load)
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": name, "legendgroup": name,
                "x": [0.0, *load.tolist()], "y": [0.0, *part.tolist()],
                "line": {"color": colour.light, "width": 2, "shape": "hv"},
                "customdata": [quantity.size(value) for value in [0.0, *load.tolist()]],
                "hovertemplate": f"%{{y:.0%}} of the links carry at most %{{customdata}} ({name})<extra></extra>",
            }
        )  # fmt: skip
    figure: Figure = {
        "data": data,
        "layout": layout(
            340,
            xaxis=value_axis("bytes per link and step", [high], quantity.size, log=False, room=0.04),
            yaxis=value_axis("share of links", [1.0], lambda part: f"{part * 100:g}\u00a0%", log=False),
        ),
    }
    legend = tuple(Swatch(name, colour, shape, group=name) for name, colour, _, shape in drawn)
    return Chart(
        "load", "Distribution of bytes over links", (View("", figure),), legend,
        caption="A steep curve means an even load; a long tail to the right means that a few links are the bottleneck.",
    )  # fmt: skip


def history_chart(design: Design) -> Chart:
    """The time of a step after every turn of the alternation; filled where it was the best so far."""
    turns = design.history
    words = {"start": "start", "strategy": "strategy", "topology": "topology", "exhaustive": "tried"}
    names = [words[turn.plane] + (f" {turn.round}" if turn.round else "") for turn in turns]
    seconds = [turn.seconds for turn in turns]
    line = {
        "type": "scatter", "mode": "lines+markers", "cliponaxis": False, "x": list(range(len(turns))), "y": seconds,
        "line": {"color": colours.MUTED.light, "width": 1.5},
        "marker": {
            "size": 10,
            "color": [colours.ACCENT.light if turn.best else colours.PAPER.light for turn in turns],
            "line": {"color": colours.ACCENT.light, "width": 2},
        },
        "customdata": [f"{plain(name)}: {quantity.seconds(value)}" for name, value in zip(names, seconds, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    few = len(turns) <= 14
    figure: Figure = {
        "data": [line],
        "layout": layout(
            280,
            xaxis=axis(
                range=[-0.4, len(turns) - 0.6],
                showgrid=False,
                tickvals=list(range(len(turns))) if few else [0, len(turns) - 1],
                ticktext=names if few else [names[0], names[-1]],
            ),
            yaxis=seconds_axis("step time", seconds, log=False, room=0.12),
        ),
    }
    return Chart(
        "history", f"Step time over {len(turns)} rounds of the search", (View("", figure),),
        (Swatch("best so far", colours.ACCENT, "dot"), Swatch("accepted", colours.ACCENT, "circle")),
        caption=ENDED.get(design.ended, ""),
    )  # fmt: skip


ENDED = {
    "converged": "The search ended because no better strategy was found for the last wiring.",
    "rounds": "The search used all its rounds; more rounds might find a better plan.",
    "exhaustive": "Every strategy was tried on every wiring built for a strategy: this is the optimum.",
    "interrupted": "The search was interrupted; this is the best plan found so far.",
    "enumerated": "Every strategy that could be best was estimated on every wiring built for one of them, and the best "
    "pairs were simulated.",
}


def baseline_chart(design: Design) -> Chart:
    """The plan and what it is compared with, by time and by cost."""
    rows = [("plan", design.step_time_s, design.cost)]
    rows += [(name, row.step_time_s, row.cost) for name, row in design.baselines.items()]
    ordered = sorted(rows, key=lambda row: (row[1], row[0] != "plan", row[0]))
    names = [name for name, _, _ in ordered]
    seconds, dollars = [row[1] for row in ordered], [row[2] for row in ordered]
    hovers = [plain(name) for name in names]
    plan, cost = design.step_time_s, design.cost
    time_texts = [
        quantity.seconds(value) + ("" if name == "plan" else f" · {quantity.times(value / plan)}")
        for name, value in zip(names, seconds, strict=True)
    ]
    cost_texts = [
        money(value) + ("" if name == "plan" else f" · {quantity.times(value / cost)}")
        for name, value in zip(names, dollars, strict=True)
    ]
    return Chart(
        "baselines",
        f"Step time and cost of the plan and {len(rows) - 1} other networks",
        (
            View("step time", ranking(names, seconds, time_texts, hovers, quantity.seconds, "plan")),
            View("cost of the network", ranking(names, dollars, cost_texts, hovers, money, "plan")),
        ),
        (Swatch("this plan", colours.ACCENT), Swatch("baselines", colours.OTHER)),
        choose="Bars",
        caption="× is relative to the plan.",
    )


def money(dollars: float) -> str:
    """Dollars as people quote them: $64.5k."""
    for factor, letter in ((1e6, "M"), (1e3, "k")):
        if dollars >= factor:
            return f"${dollars / factor:.3g}{letter}"
    return f"${dollars:.3g}"
