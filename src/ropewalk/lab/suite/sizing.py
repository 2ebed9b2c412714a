"""How long work takes on a quiet lab, roughly: enough to choose how much of it to run."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.lab.network import LabNetwork
from ropewalk.routing import Routes
from ropewalk.sim import Trace, simulate
from ropewalk.task import TaskGraph

MEGABYTE = 1_000_000
TRIED_BYTES = MEGABYTE
"""A buffer of which the time is predicted to find the size that takes as long as is wanted."""


def rough_run(network: LabNetwork, graph: TaskGraph, routes: Routes) -> Trace:
    """When tasks start and end in the lab, headers and latencies left out.

    >>> import numpy as np
    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task import Sketch
    >>> ring, sketch = Ring(3, bandwidth=100.0).build(), Sketch()
    >>> _ = sketch.transfer(0, 1, 500.0)
    >>> rough_run(LabNetwork(ring, scale=2.0), sketch.graph(), shortest(ring, np.array([0]), np.array([1]))).makespan
    10.0
    """
    fabric = routes.fabric
    slow = replace(fabric, bandwidth=fabric.bandwidth / network.scale, latency=0 * fabric.latency)
    return simulate(graph, replace(routes, fabric=slow))
