"""What a module computes when, seen with a clock: the input of every plan, measured instead of priced.

Forward passes are cut where the modules that hold parameters begin, backward passes where gradients appear. Updates by
the optimizer belong to the forward pass of the layer that waits for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.holder import holder
from ropewalk.overlap.tensors import Tensors, from_layers

Module = Any
Loss = Callable[[Any], Any]
"""A module -> the loss of one batch."""


@dataclass(frozen=True)
class LayerTimes:
    """Medians over runs, in seconds; layers in the order in which the forward pass reaches them."""

    layers: tuple[str, ...]
    forward_s: tuple[float, ...]
    """The update of the layer's own parameters included."""
    backward_s: tuple[float, ...]
    parameters: tuple[str, ...]
    size_bytes: tuple[int, ...]
    layer: tuple[int, ...]
    ready_s: tuple[float, ...]
    """When each gradient appears, from the start of the backward pass."""

    @property
    def compute_s(self) -> float:
        return sum(self.forward_s) + sum(self.backward_s)

    def tensors(self, model: str) -> Tensors:
        """As the input of plans."""
        return from_layers(
            self.size_bytes,
            backward_s=self.backward_s,
            forward_s=self.forward_s,
            layer=self.layer,
            ready_s=self.ready_s,
            names=self.parameters,
            layer_names=self.layers,
            model=model,
            source="measured",
        )


def measured_layers(
    module: Module, loss: Loss, optimizer_factory: Callable[[list[Any]], Any], *, runs: int = 5
) -> LayerTimes:
    """Train a module for some steps without any communication and look at the clock; one more step warms up."""
    trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    optimizers = {name: optimizer_factory([parameter]) for name, parameter in trained.items()}
    began: dict[str, float] = {}
    ready: dict[str, float] = {}

    def note_begin(place: str) -> Callable[..., None]:
        return lambda *_: began.update({place: began.get(place, time.perf_counter())})

    def note_gradient(name: str) -> Callable[..., None]:
        return lambda *_: ready.update({name: time.perf_counter()})

    handles = [
        *(child.register_forward_pre_hook(note_begin(place)) for place, child in module.named_modules()),
        *(one.register_post_accumulate_grad_hook(note_gradient(name)) for name, one in trained.items()),
    ]
    seen = []
    try:
        for _ in range(runs + 1):
            began.clear()
            ready.clear()
            start = time.perf_counter()
            value = loss(module)
            turn = time.perf_counter()
            value.backward()
            end = time.perf_counter()
            updates = {name: _timed(optimizer.step) for name, optimizer in optimizers.items()}
            for parameter in trained.values():
                parameter.grad = None
            seen.append((start, turn, end, dict(began), dict(ready), updates))
    finally:
        for handle in handles:
            handle.remove()
    return _medians(module, trained, seen[1:])


def _timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _medians(module: Module, trained: dict[str, Any], seen: list[Any]) -> LayerTimes:
    began = seen[-1][3]
    homes = {name: holder(name.rpartition(".")[0], began) for name in trained}
    layers = sorted(set(homes.values()), key=lambda place: began[place])
    number = {place: at for at, place in enumerate(layers)}
    names = sorted(trained, key=lambda name: number[homes[name]])
    owner = [number[homes[name]] for name in names]
    forward, backward, appeared = [], [], []
    for start, turn, end, called, ready, updates in seen:
        if missing := sorted(trained.keys() - ready.keys()):
            raise StrategyError(f"{missing[0]} had no gradient: freeze parameters that are not used")
        begins = [start, *(called[place] for place in layers[1:]), turn]
        spent = np.diff(begins)
        np.add.at(spent, owner, [updates[name] for name in names])
        forward.append(spent)
        appeared.append([ready[name] - turn for name in names])
        over = np.zeros(len(layers) + 1)
        np.maximum.at(over, owner, appeared[-1])
        over[0] = end - turn
        over = np.maximum.accumulate(over[::-1])[::-1]  # a layer is not over before those behind it
        backward.append(over[:-1] - over[1:])
    middle = [np.median(rows, axis=0).tolist() for rows in (forward, backward, appeared)]
    return LayerTimes(
        tuple(place or "module" for place in layers),
        tuple(middle[0]),
        tuple(middle[1]),
        tuple(names),
        tuple(trained[name].numel() * trained[name].element_size() for name in names),
        tuple(owner),
        tuple(middle[2]),
    )
