"""Answers of labs without a lab: what is measured is a simulation of another fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ropewalk.fabric import LeafSpine
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.process import LabRun, LinkSamples
from ropewalk.lab.result import LabPrediction, curves_of
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import Sketch

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
