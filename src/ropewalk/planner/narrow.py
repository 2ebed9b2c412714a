"""What must cross the narrowest cuts of a network, whatever collectives run and wherever ranks are placed.

Take the GPUs of one server, or of several on a leaf, and what can get into them from all others. Of a vector that n
ranks gather they must receive the part that none of them has, (n - c)/n of it where c of the n are among them; of a sum
over all ranks as much; and that for every group with a rank there. How many groups these are depends on who is placed
there. Ranks are points of a grid (tensor, context, expert and data degree). Whatever points are taken, there is a box
of as many whose faces are no larger than their shadows (Bollobás and Thomason, Projections of bodies and hereditary
properties of hypergraphs, 1995): g points are in at least as many groups along some directions as g over the sides of
the box in these directions. The best box is a convex program, and its tangents are a linear one that is never above it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from ropewalk.arrays import Floats, Ints
from ropewalk.fabric import Fabric
from ropewalk.planner.channels import Channel
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.hidden import hidden_bytes
from ropewalk.planner.layers import Held, PassColumn
from ropewalk.planner.layout import Layout
from ropewalk.planner.pricing import Priced

AXES = ("tensor", "context", "expert", "copies")
ALONG: dict[str, tuple[int, ...]] = {"tensor": (0,), "context": (1,), "all": (2,), "data": (1, 2, 3), "experts": (1, 3)}
"""Groups, and the directions of the grid in which their ranks lie."""
TANGENTS = 24
UNIT = 1e7
"""Bytes/s in which capacities are counted, rounded up."""


class Into(NamedTuple):
    """GPUs that lie together, and bytes per second that can get into them."""

    gpus: int
    bytes_per_s: float


class Sent(NamedTuple):
    """Bytes of whole vectors that every rank of a kind of group is part of in a step: gathered, scattered."""

    gathered: float
    scattered: float


def narrowest(fabric: Fabric) -> tuple[Into, ...]:
    """The first server, the first two, four, …: how much can get into them."""
    return _narrowest(fabric)


@lru_cache(maxsize=4)
def _narrowest(fabric: Fabric) -> tuple[Into, ...]:
    server = np.arange(fabric.hosts) if fabric.server is None else np.asarray(fabric.server)
    servers, found, many = int(server.max()) + 1, [], 1
    while many < servers:
        inside = np.flatnonzero(server < many)
        found.append(Into(len(inside), _flow(fabric, np.flatnonzero(server >= many), inside)))
        many *= 2
    return tuple(found)


def _flow(fabric: Fabric, giving: Ints, taking: Ints) -> float:
    """Bytes per second that get from some hosts into others."""
    source, sink = fabric.nodes, fabric.nodes + 1
    most = np.int64(2**30)
    start = np.concatenate([fabric.link_src, np.full(len(giving), source), taking])
    end = np.concatenate([fabric.link_dst, giving, np.full(len(taking), sink)])
    wide = np.concatenate([np.ceil(fabric.bandwidth / UNIT), np.full(len(giving) + len(taking), 2.0**20)])
    capacity = csr_array((np.minimum(wide, most).astype(np.int32), (start, end)), shape=(sink + 1, sink + 1))
    flow: Any = maximum_flow
    return float(flow(capacity, source, sink).flow_value) * UNIT


def narrow_floor(priced: Priced, row: Ints, layout: Layout, into: tuple[Into, ...], wire: float) -> float:
    """Seconds in which a candidate with one stage gets its bytes through the narrowest cut, at least."""
    degrees, sent = degrees_of(layout), sent_by(priced, row)
    floor = 0.0
    for cut in into:
        if cut.gpus < degrees.prod():
            for way in range(2):
                through = least_through({name: float(one[way]) for name, one in sent.items()}, degrees, cut.gpus)
                floor = max(floor, through * wire / cut.bytes_per_s)
    return floor


def degrees_of(layout: Layout) -> Floats:
    """How many ranks lie along each of the axes."""
    return np.array([layout.tensor, layout.context, layout.expert, layout.data // layout.expert], np.float64)


def least_through(sizes: dict[str, float], degrees: Floats, gpus: int) -> float:
    """Bytes that get into, or out of, so many GPUs at least, whichever ranks are on them.

    >>> alone = least_through({"data": 100.0}, np.array([1.0, 1.0, 1.0, 32.0]), 8)  # 8 of 32 have a quarter of it
    >>> round(alone, 3)
    75.0
    """
    used = [(name, size) for name, size in sizes.items() if size > 0]
    at, axes = np.linspace(0.0, np.log(gpus), TANGENTS), len(degrees)
    rows, limits, top = [], [], np.log(gpus)
    for number, (name, size) in enumerate(used):
        along = np.isin(np.arange(axes), ALONG[name]).astype(np.float64)
        inside = size * gpus / float(degrees[list(ALONG[name])].prod())
        height = size * gpus * np.exp(-at)
        # The tangent at a: height - height (s - a) - inside <= bytes, where s is the sum of sides in logarithms.
        own = np.zeros((TANGENTS, axes + len(used)))
        own[:, :axes], own[:, axes + number] = -height[:, None] * along, -1.0
        rows.append(np.vstack([own, np.append(along, np.zeros(len(used)))]))
        limits.append(np.append(inside - height * (1 + at), top))
    if not used:
        return 0.0
    solve: Any = linprog
    found = solve(
        np.append(np.zeros(axes), np.ones(len(used))), A_ub=np.vstack(rows), b_ub=np.concatenate(limits),
        A_eq=np.append(np.ones(axes), np.zeros(len(used)))[None], b_eq=[top],
        bounds=[*((None, float(np.log(one))) for one in degrees), *((0.0, None) for _ in used)],
    )  # fmt: skip
    return float(found.fun * (1 - 1e-6)) if found.status == 0 else 0.0


def sent_by(priced: Priced, row: Ints) -> dict[str, Sent]:
    """Bytes that a candidate with one stage exchanges in a step, at least, by kind of group."""
    one, split = priced.kernels, row[Column.SPLITTING]
    held, many, zero = one.model.held[split], int(row[Column.MICRO_BATCHES]), int(row[Column.ZERO])
    walks = [PassColumn.FORWARD, PassColumn.BACKWARD, PassColumn.AGAIN + int(row[Column.RECOMPUTE])]
    met = one.model.met[split][:, walks, :, 0].sum((0, 1)) + hidden_bytes(one.model.hidden[split][:, walks])
    found = met_by(met * many)
    for name, column, still, narrow in (
        ("data", Held.DENSE, Held.FROZEN, Held.NARROW),
        ("experts", Held.EXPERT, Held.FROZEN_EXPERT, Held.NARROW_EXPERT),
    ):
        gathers = held[:, column] + held[:, still] if zero >= 3 else held[:, column]
        weights = gathers * one.settings[Setting.ELEMENT_BYTES]
        gradients = float(held[:, column].sum() * one.settings[Setting.GRADIENT_BYTES])
        whole, largest = float(weights.sum()), float(weights.max(initial=0.0))
        if zero < 3:
            sent_narrow = min(float(held[:, column].sum()), float(held[:, narrow].sum()))
            whole -= sent_narrow * float(one.settings[Setting.SENT_LESS_BYTES])
        # Weights that are there from the pass before are not gathered again.
        passes = 2 if one.settings[Setting.REGATHER] > 0 else 1
        gathered = passes * many * (whole - largest) if zero >= 3 else whole if zero else gradients
        found[name] = Sent(gathered, gradients * (many if zero >= 2 else 1))
    return found


def met_by(met: Floats) -> dict[str, Sent]:
    """Bytes that ranks exchange inside of layers, by kind of group, of those by channel."""
    reduced = float(met[Channel.TENSOR_REDUCE])
    return {
        "tensor": Sent(reduced + float(met[Channel.TENSOR_GATHER]), reduced + float(met[Channel.TENSOR_SCATTER])),
        "context": Sent(
            float(met[Channel.CONTEXT_GATHER] + met[Channel.HEADS]),
            float(met[Channel.CONTEXT_SCATTER] + met[Channel.HEADS]),
        ),
        "all": Sent(float(met[Channel.EXPERT]), float(met[Channel.EXPERT])),
    }
