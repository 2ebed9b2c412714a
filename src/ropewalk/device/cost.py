"""What one training step of a model costs on one GPU: forward, backward, update, and the host that launches it all."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ropewalk.device.pricer import Pricer
from ropewalk.device.work import Work
from ropewalk.workload.workload import Layer, Workload


@dataclass(frozen=True)
class LayerCost:
    """One layer of a step."""

    name: str
    forward: Work
    backward: Work


@dataclass(frozen=True)
class StepCost:
    """One step of one GPU, in parts that add up in `Work`."""

    model: str
    device: str
    precision: str
    optimiser: str
    source: str
    stack: str
    power_limit_w: float | None
    """Watts that the device is held to; None: it runs at full clock."""
    clock: float
    """Part of the full clock at which it runs."""
    parameters: int
    trained_parameters: int
    """Of these, those that are updated."""
    layers: tuple[LayerCost, ...]
    update: Work

    @property
    def forward(self) -> Work:
        return sum((layer.forward for layer in self.layers), Work())

    @property
    def backward(self) -> Work:
        return sum((layer.backward for layer in self.layers), Work())

    @property
    def forward_s(self) -> float:
        return self.forward.seconds

    @property
    def forward_backward_s(self) -> float:
        return (self.forward + self.backward).seconds

    @property
    def step_s(self) -> float:
        return (self.forward + self.backward + self.update).seconds

    def summary(self) -> dict[str, object]:
        """The step in numbers, for files and other programs."""
        return {
            "model": self.model,
            "device": self.device,
            "precision": self.precision,
            "optimiser": self.optimiser,
            "cost_source": self.source,
            "stack": self.stack or None,
            "power_limit_w": self.power_limit_w,
            "clock": self.clock,
            "parameters": self.parameters,
            "trained_parameters": self.trained_parameters,
            "forward_s": self.forward_s,
            "forward_backward_s": self.forward_backward_s,
            "step_time_s": self.step_s,
            "forward": asdict(self.forward),
            "backward": asdict(self.backward),
            "update": asdict(self.update),
        }


def step_cost(workload: Workload, prices: Pricer, optimiser: str = "adamw") -> StepCost:
    """The cost of one step of the whole workload on one GPU, one micro-batch."""
    return StepCost(
        model=workload.name,
        device=prices.device.name,
        precision=prices.precision.name,
        optimiser=optimiser,
        source=prices.source,
        stack=workload.stack,
        power_limit_w=prices.device.held_to,
        clock=prices.clock,
        parameters=workload.parameters(),
        trained_parameters=workload.trained_parameters(),
        layers=tuple(layer_cost(layer, prices) for layer in workload.layers),
        update=prices.update_work(workload.trained_parameters(), workload.parameter_tensors(), optimiser),
    )


def layer_cost(layer: Layer, prices: Pricer) -> LayerCost:
    """What one layer costs, forward and backward."""
    return LayerCost(layer.name, prices.forward_work(layer.operators), prices.backward_work(layer.operators))
