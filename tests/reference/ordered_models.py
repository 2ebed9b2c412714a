"""Models given by plain numbers, lowered with their gradients in an order, and run step after step on a fabric."""

from __future__ import annotations

from dataclasses import dataclass, field

from ropewalk.overlap.tensors import Tensors
from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.task.lower import lower_steps
from ropewalk.training.network import NetworkUse, expand_on, run_on
from ropewalk.training.steady import STEPS_IN_A_ROW, steady_step
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, Workload, chain


@dataclass
class Bytes:
    name: str = "bytes"
    element_bytes: float = 1.0


@dataclass
class AsMeasured:
    """Layers take the times they were measured with; updates are free, and a parameter is a byte."""

    precision: Bytes = field(default_factory=Bytes)

    def forward(self, operators):
        return sum(op.forward_s for op in operators)

    def backward(self, operators):
        return sum(op.backward_s for op in operators)

    def weight(self, operators):
        return 0.0

    def update(self, parameters, tensors, optimiser):
        return 0.0


def workload_of(tensors: Tensors) -> Workload:
    """The layers of a model that has one tensor for a layer at most."""
    sizes = dict(zip(tensors.layer.tolist(), tensors.size_bytes.tolist(), strict=True))
    names = dict(zip(tensors.layer.tolist(), tensors.names, strict=True))
    times = zip(tensors.forward_s.tolist(), tensors.backward_s.tolist(), strict=True)
    layers = [
        Layer(names.get(at, f"layer {at}"), (Measured(forward, backward, round(sizes.get(at, 0.0))),), 1)
        for at, (forward, backward) in enumerate(times)
    ]
    return chain("numbers", layers, batch=1)


def step_seconds(tensors: Tensors, ranks: int, order: Order, fabric, use: NetworkUse) -> float:
    """Seconds from one step to the next."""
    strategy = Strategy(data=ranks, order=order, optimiser="none")
    row = lower_steps(workload_of(tensors), strategy, Placement(strategy), AsMeasured(), STEPS_IN_A_ROW, "layer")
    run = run_on(row.step, expand_on(row.step, fabric, use), fabric, use)
    window = steady_step(run, row.ends)
    return window.end_s - window.begin_s
