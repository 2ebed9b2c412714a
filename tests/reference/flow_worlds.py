"""Random small worlds for the laws of the flow level: a fabric, a router that fits it, and a task graph on its hosts.

All numbers are small fractions, so that ties are real ties for the exact reference and for the engine alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from ropewalk.fabric import BCube, Fabric, FatTree, IdealSwitch, LeafSpine, RandomRegular, Torus
from ropewalk.routing import ROUTERS, Routes
from ropewalk.task import Sketch, TaskGraph, TaskKind

BUILDERS = (
    IdealSwitch(4, bandwidth=6.0),
    FatTree(4, bandwidth=4.0, latency=0.125),
    Torus((4, 4), bandwidth=3.0),
    Torus((3, 2), bandwidth=5.0, latency=0.25),
    BCube(3, 2, bandwidth=2.0),
    LeafSpine(3, 2, 2, cables=2, bandwidth=4.0, latency=0.125),
    RandomRegular(8, 3, seed=2, bandwidth=1.0),
)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """A small fabric; sometimes every link has a speed of its own."""
    fabric = draw(st.sampled_from(BUILDERS)).build()
    if draw(st.booleans()):
        speeds = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0]), min_size=1, max_size=7))
        fabric = replace(fabric, bandwidth=np.resize(np.array(speeds), fabric.links))
    return fabric


@st.composite
def graphs(draw: st.DrawFn, hosts: int, most: int = 12) -> TaskGraph:
    """Transfers, computes and markers with dependencies, priorities, caps and start-ups; at least one transfer."""
    sketch = Sketch()
    # Few hosts are used, so that transfers meet, also several between the same two.
    used = draw(st.lists(st.integers(0, hosts - 1), min_size=2, max_size=4, unique=True))
    ends = st.tuples(st.sampled_from(used), st.sampled_from(used)).filter(lambda pair: pair[0] != pair[1])
    kinds = draw(
        st.lists(
            st.sampled_from([*[TaskKind.TRANSFER] * 4, *[TaskKind.COMPUTE] * 2, TaskKind.MARKER]), max_size=most - 1
        )
    )
    for number, kind in enumerate([*kinds, TaskKind.TRANSFER]):
        after = draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)) if number else []
        priority = draw(st.sampled_from([0, 0, 0, 1, 2]))
        if kind == TaskKind.MARKER:
            sketch.marker(after=after)
        elif kind == TaskKind.COMPUTE:
            length, stream = draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5])), draw(st.integers(0, 1))
            sketch.compute(draw(st.sampled_from(used)), length, after=after, stream=stream, priority=priority)
        else:
            sketch.transfer(
                *draw(ends),
                draw(st.sampled_from([0.0, 1.0, 2.0, 2.0, 3.0, 5.0, 24.0])),
                after=after,
                priority=priority,
                start_up=draw(st.sampled_from([0.0, 0.0, 0.125, 1.0])),
                rate_cap=draw(st.sampled_from([np.inf, np.inf, np.inf, 0.5, 1.0, 3.0])),
            )
    return sketch.graph()


def routed(graph: TaskGraph, fabric: Fabric, router: str, seed: int = 0) -> Routes:
    transfer = graph.kind == TaskKind.TRANSFER
    return ROUTERS[router].make(seed)(fabric, graph.place[transfer], graph.peer[transfer])


@st.composite
def worlds(draw: st.DrawFn, most: int = 12) -> tuple[TaskGraph, Routes]:
    fabric = draw(fabrics())
    router = draw(st.sampled_from(ROUTERS.names_for(fabric)))
    graph = draw(graphs(fabric.hosts, most))
    return graph, routed(graph, fabric, router, draw(st.integers(0, 3)))
