"""Orders of gradients simulated: the lowered step of the model on the fabric of its cluster, one order after the other.

The link of the estimate is measured on the same fabric: how long one all-reduce of all GPUs takes, small and large. So
on a network with nothing else on it, estimate and simulation of one launch at a time agree to rounding; what is left
between them is when GPUs update (`optimiser` none turns it off) and what several launches at once do to each other.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.errors import StrategyError
from ropewalk.fabric import Fabric
from ropewalk.overlap.link import Link
from ropewalk.strategy.order import Order
from ropewalk.task.step import Act, StepSketch
from ropewalk.task.transport import Transport
from ropewalk.training import TrainingAnswer, TrainingQuestion, answer
from ropewalk.training.network import NetworkUse, expand_on, run_on

SMALL, LARGE = 1e6, 1e9
"""Bytes of the two all-reduces that a link is measured by."""
SLOWER = 1e3
"""Ranks that add so many times as slowly as they send do nothing else: what they add is seen by how long it takes."""


def measured_link(fabric: Fabric, workers: int, use: NetworkUse) -> Link:
    """What one all-reduce of all GPUs costs on a fabric: so much to start up, so much a byte, so much of it to add up.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.task.transport import Transport
    >>> link = measured_link(IdealSwitch(2, bandwidth=1e9).build(), 2, NetworkUse(transport=Transport(start_up_s=1e-3)))
    >>> round(link.bandwidth), round(link.start_up_s, 9)
    (1000000000, 0.001)
    """
    if fabric.hosts < workers:
        raise StrategyError(f"{fabric.name} has {fabric.hosts} hosts for {workers} GPUs: give a larger fabric")
    costs = use.transport or Transport()
    bandwidth, small = _measured(fabric, workers, replace(use, transport=replace(costs, mixer=FREE)))
    link = Link(bandwidth, max(0.0, small - SMALL / bandwidth))
    if costs.mixer.free:
        return link
    slow = Mixer(bandwidth / SLOWER)
    mixed, _ = _measured(fabric, workers, replace(use, transport=replace(costs, mixer=slow)))
    return replace(link, mixer=costs.mixer, added=slow.rate / mixed)


def _measured(fabric: Fabric, workers: int, use: NetworkUse) -> tuple[float, float]:
    """Bytes/s of large all-reduces, and the seconds of a small one."""
    small, large = (_all_reduce_s(fabric, workers, size, use) for size in (SMALL, LARGE))
    return (LARGE - SMALL) / (large - small), small


def _all_reduce_s(fabric: Fabric, workers: int, size_bytes: float, use: NetworkUse) -> float:
    sketch = StepSketch(workers)
    sketch.collective(Act.ALL_REDUCE, range(workers), size_bytes)
    step = sketch.step()
    return run_on(step, expand_on(step, fabric, use), fabric, use).trace.makespan


def simulated(question: TrainingQuestion, order: Order) -> TrainingAnswer:
    """The step of a question with its gradients in this order."""
    return answer(replace(question, usual=replace(question.usual, order=order)))
