"""Flow by flow and link by link: what each level predicts and what the network did, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.trace import Trace

POINTS = 200
"""Instants at which a predicted curve is given."""


@dataclass(frozen=True, eq=False)
class LinkCurves:
    """What every link had sent by when: bytes on the wire since the run began, headers included."""

    at_s: NDArray[np.float64]
    sent_bytes: NDArray[np.float64]
    """By (instant, link)."""
    waiting_bytes: NDArray[np.float64] | None = None
    """In the queue of every link at each instant, where somebody looked."""

    def of_link(self, link: int) -> list[float]:
        sent: list[float] = self.sent_bytes[:, link].tolist()
        return sent


@dataclass(frozen=True, eq=False)
class LabPrediction:
    """The same tasks on the same routes, simulated at one level; seconds are those of the lab."""

    level: str
    """`flow`, `wire` or `packet`."""
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    """By task."""
    curves: LinkCurves
    dropped: int = 0
    """Packets that found a queue full, where packets are simulated."""

    @property
    def seconds(self) -> float:
        return float(self.end.max(initial=0.0))


@dataclass(frozen=True)
class Span:
    """When a transfer began and ended."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class FlowTimes:
    """One transfer: what every level says of it, and what the clock saw in the typical run."""

    task: int
    src: str
    dst: str
    size_bytes: float
    links: tuple[int, ...]
    """That it crosses, on all its paths."""
    predicted: dict[str, Span]
    """By level."""
    measured: Span


def curves_of(trace: Trace, wire_share: float) -> LinkCurves:
    """The curves of a flow-level run with recorded rates; `wire_share` are bytes on the wire for a byte of payload.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.sim import simulate
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 100.0)
    >>> routes = shortest(Ring(3, 50.0).build(), np.array([0]), np.array([1]))
    >>> curves = curves_of(simulate(sketch.graph(), routes, record_rates=True), 1.0)
    >>> float(curves.at_s[-1]), round(float(curves.sent_bytes[-1].max()), 6)
    (2.0, 100.0)
    """
    routes = trace.routes
    assert trace.rate is not None
    assert trace.rate_time is not None
    assert trace.rate_pair is not None
    assert trace.rate_class is not None
    at = np.linspace(0.0, trace.makespan, POINTS)
    sent = np.zeros((POINTS, routes.fabric.links))
    order = np.lexsort((np.arange(len(trace.rate)), trace.rate_class))
    for rows in np.split(order, np.flatnonzero(np.diff(trace.rate_class[order])) + 1):
        if not len(rows):
            continue
        carried = _carried(trace.rate_time[rows], trace.rate[rows], at)
        pair = int(trace.rate_pair[rows[0]])
        for path in range(int(routes.path_start[pair]), int(routes.path_start[pair + 1])):
            links = routes.link[routes.link_start[path] : routes.link_start[path + 1]]
            sent[:, links] += (carried * float(routes.share[path]) * wire_share)[:, None]
    return LinkCurves(at, sent)


def _carried(time: NDArray[np.float64], rate: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bytes by each instant, of a flow that has `rate[i]` from `time[i]` on."""
    knots = np.append(time, max(float(time[-1]), float(at[-1])))
    bytes_at = np.concatenate([[0.0], np.cumsum(rate * np.diff(knots))])
    return np.asarray(np.interp(at, knots, bytes_at, left=0.0), np.float64)
