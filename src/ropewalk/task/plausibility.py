"""Quantities that are possible but that nobody means: most often bits written as bytes, or seconds as milliseconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.task.graph import TaskGraph, TaskKind
from ropewalk.units import show_bandwidth, show_seconds, show_size

SLOWEST_LINK = 1e6 / 8
"""1 Mbps in bytes/s: no cluster has been wired with less for decades."""

FASTEST_LINK = 100e12 / 8
"""100 Tbps in bytes/s: more than any link or any bundle that behaves as one."""

LARGEST_TRANSFER = 1e15
"""1 PB: more than the parameters, gradients and optimiser state of any model."""

LONGEST_TASK = 86400.0
"""A day: one task of one training step does not take that long."""

LONGEST_WAIT = 3600.0
"""An hour between the order to send and the first byte."""

LONGEST_LATENCY = 1.0
"""A second on one link: light reaches the moon in little more."""

Slip = tuple[NDArray[np.bool_], Callable[[int], str]]
"""Which tasks or links slipped, and how to say it of one of them."""


def unit_slips(
    graph: TaskGraph, fabric: Fabric | None = None, name_of: Callable[[int], str] | None = None
) -> list[str]:
    """What in a graph, and on the fabric it runs on, looks like a slip of units: one finding for each sort of slip.

    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.compute(0, 200000.0, label="forward")
    >>> unit_slips(sketch.graph())
    ['task 0 (forward) computes for 2e+05 s, longer than a day: check its unit (milliseconds or microseconds?)']
    """
    name = name_of or (lambda task: f"task {task} ({graph.name_of(task)})")
    compute, transfer = graph.kind == TaskKind.COMPUTE, graph.kind == TaskKind.TRANSFER
    size, cap = graph.amount, graph.rate_cap
    slips: list[Slip] = [
        (
            transfer & (size > 0) & (size < 1),
            lambda task: f"transfers {size[task]:.3g} of a byte: give its size in bytes, such as 25MB",
        ),
        (
            transfer & (size > LARGEST_TRANSFER),
            lambda task: f"transfers {show_size(size[task])}, more than any model has: check its unit",
        ),
        (
            compute & (size > LONGEST_TASK),
            lambda task: (
                f"computes for {show_seconds(size[task])}, longer than a day: check its unit (milliseconds or "
                "microseconds?)"
            ),
        ),
        (
            transfer & (graph.start_up > LONGEST_WAIT),
            lambda task: (
                f"starts up in {show_seconds(graph.start_up[task])}, longer than an hour: "
                "check its unit (milliseconds or microseconds?)"
            ),
        ),
        (
            transfer & ((cap < SLOWEST_LINK) | ((cap > FASTEST_LINK) & (cap < np.inf))),
            lambda task: f"has a rate cap of {show_bandwidth(cap[task])}: {_bits_or_bytes(cap[task])}",
        ),
    ]
    found = [
        f"{name(first)} {text(first)}{_and_more(wrong, 'tasks')}"
        for wrong, text in slips
        for first in np.flatnonzero(wrong)[:1].tolist()
    ]
    return found + (link_slips(fabric) if fabric is not None else [])


def link_slips(fabric: Fabric) -> list[str]:
    """What on a fabric looks like a slip of units."""
    speed, latency = fabric.bandwidth, fabric.latency
    slips: list[Slip] = [
        (
            (speed < SLOWEST_LINK) | (speed > FASTEST_LINK),
            lambda link: f"has a bandwidth of {show_bandwidth(speed[link])}: {_bits_or_bytes(speed[link])}",
        ),
        (
            latency > LONGEST_LATENCY,
            lambda link: f"has a latency of {show_seconds(latency[link])}: are these microseconds?",
        ),
    ]
    return [
        f"link {fabric.link_name(first)} {text(first)}{_and_more(wrong, 'links')}"
        for wrong, text in slips
        for first in np.flatnonzero(wrong)[:1].tolist()
    ]


def _bits_or_bytes(bytes_per_s: float) -> str:
    if bytes_per_s < SLOWEST_LINK:
        return "slower than 1 Mbps; write it with its unit, such as 100Gbps"
    return f"faster than 100 Tbps; is {bytes_per_s:.3g} bytes/s written as bits?"


def _and_more(wrong: NDArray[np.bool_], what: str) -> str:
    count = int(wrong.sum())
    return f" ({count} such {what})" if count > 1 else ""
