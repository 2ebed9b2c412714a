"""Links sorted into the few classes that an eye can tell apart: by speed, or by how busy they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.report import quantity

MOST_CLASSES = 6
BUSY = (0.001, 0.2, 0.4, 0.6, 0.8)
"""Utilisation from which on a link belongs to the next class."""

ROUND_ENDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Where a scale of utilisation may end that is fitted to what occurs."""


@dataclass(frozen=True, eq=False)
class LinkClasses:
    """A class and a value for each link; of several links between two nodes the highest value is the one shown."""

    palette: str
    """The CSS class with the colours."""
    value: NDArray[np.float64]
    of_link: NDArray[np.int64]
    labels: tuple[str, ...]
    show: Callable[[float], str]
    directed: bool = False
    """Is the value one of a direction rather than of a cable?"""


def by_speed(fabric: Fabric) -> LinkClasses:
    """Slow to fast; more than six speeds share classes of equal ratio."""
    speeds = np.unique(fabric.bandwidth)
    if len(speeds) <= MOST_CLASSES:
        of_link = np.searchsorted(speeds, fabric.bandwidth)
        labels = tuple(quantity.bandwidth(speed) for speed in speeds.tolist())
        return LinkClasses("speed", fabric.bandwidth, of_link.astype(np.int64), labels, quantity.bandwidth)
    edges = np.geomspace(speeds[0], speeds[-1], MOST_CLASSES + 1)
    of_link = np.clip(np.searchsorted(edges, fabric.bandwidth, side="right") - 1, 0, MOST_CLASSES - 1)
    labels = tuple(
        f"{quantity.bandwidth(low)} to {quantity.bandwidth(high)}"
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    )
    return LinkClasses("speed", fabric.bandwidth, of_link.astype(np.int64), labels, quantity.bandwidth)


def by_utilisation(utilisation: NDArray[np.float64], *, fit: bool = False) -> LinkClasses:
    """Idle to saturated, in steps of a fifth; with `fit` up to a round number above the busiest link instead.

    >>> by_utilisation(np.array([0.0, 0.03, 0.09]), fit=True).labels[:3]
    ('idle', 'below 2 %', '2 to 4 %')
    """
    busiest = float(utilisation.max(initial=0.0))
    whole = next((end for end in ROUND_ENDS if end > busiest), 1.0) if fit else 1.0
    marks = [f"{100 * whole * part:g}" for part in BUSY[1:]]
    between = [f"{low} to {high} %" for low, high in pairwise(marks)]
    labels = ("idle", f"below {marks[0]} %", *between, f"{marks[-1]} % or more")
    edges = np.array(BUSY) * whole
    of_link = np.searchsorted(edges, utilisation, side="right").astype(np.int64)
    return LinkClasses("heat", utilisation, of_link, labels, quantity.percent, directed=True)
