"""Answers of labs without a lab: what is measured is a simulation of another fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ropewalk.fabric import IdealSwitch, LeafSpine
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.process import LabRun, LinkSamples
from ropewalk.lab.result import LabPrediction, LinkCurves, curves_of
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import Sketch

Send = tuple[int, int, float, tuple[int, ...]]
"""From, to, bytes, and the sends that it waits for."""
QUIET = MachineUse(2.0, 2, 0.0, 0.001, 0.2, 0.3, 3.0)
LINK = "leaf0->spine0"


def answer_of_slow_link(part: float = 1.0, **changed: Any) -> LabAnswer:
    """Two transfers one after the other between leafs, measured where an uplink has a part of its speed."""
    fabric = LeafSpine(2, 1, 2, bandwidth=1e6).build()
    routes = shortest(fabric, *every_pair(fabric))
    sketch = Sketch()
    first = sketch.transfer(0, 1, 2e6)
    sketch.transfer(0, 2, 1e6, after=[first])
    graph = sketch.graph()
    predicted = simulate(graph, routes, record_rates=True)
    speeds = fabric.bandwidth.copy()
    speeds[[fabric.link_name(link) for link in range(fabric.links)].index(LINK)] *= part
    slower = replace(routes, fabric=replace(fabric, bandwidth=speeds))
    seen = simulate(graph, slower, record_rates=True)
    curves = curves_of(seen, 1.0)
    waiting = np.where(speeds < fabric.bandwidth, 1000.0, 0.0) * (curves.at_s > 2.0)[:, None]
    run = LabRun(tuple(seen.start.tolist()), tuple(seen.end.tolist()), (), QUIET, LinkSamples((), (), ()))
    answer = LabAnswer(
        what="sketch",
        details={},
        fabric=fabric,
        real_seconds=1.0,
        routing="shortest",
        predicted=predicted,
        levels=(LabPrediction("flow", predicted.start, predicted.end, curves_of(predicted, 1.0)),),
        wire_speed=np.array(fabric.bandwidth),
        predicted_bytes=predicted.link_bytes,
        runs=(run,),
        curves=(replace(curves, waiting_bytes=waiting),),
        sent_bytes=seen.link_bytes,
    )
    return replace(answer, **changed)


def answer_of_sends(sends: Sequence[Send], spans: Sequence[tuple[float, float]]) -> LabAnswer:
    """Sends between four hosts of one switch at 1 MB/s, measured at the given times, evenly while each lasts."""
    fabric = IdealSwitch(4, bandwidth=1e6).build()
    routes = shortest(fabric, *every_pair(fabric))
    sketch = Sketch()
    tasks: list[int] = []
    for src, dst, size, after in sends:
        tasks.append(sketch.transfer(src, dst, size, after=[tasks[one] for one in after]))
    predicted = simulate(sketch.graph(), routes, record_rates=True)
    at = np.linspace(0.0, max(end for _, end in spans), 500)
    sent = np.zeros((len(at), fabric.links))
    for (src, dst, size, _), (start, end) in zip(sends, spans, strict=True):
        carried = size * np.clip((at - start) / (end - start), 0.0, 1.0)
        sent[:, (fabric.link_src == src) | (fabric.link_dst == dst)] += carried[:, None]
    run = LabRun(tuple(start for start, _ in spans), tuple(end for _, end in spans), (), QUIET, LinkSamples((), (), ()))
    return LabAnswer(
        what="sends",
        details={},
        fabric=fabric,
        real_seconds=1.0,
        routing="shortest",
        predicted=predicted,
        levels=(LabPrediction("flow", predicted.start, predicted.end, curves_of(predicted, 1.0)),),
        wire_speed=np.array(fabric.bandwidth),
        predicted_bytes=predicted.link_bytes,
        runs=(run,),
        curves=(LinkCurves(at, sent),),
        sent_bytes=sent[-1],
    )
