"""Where the forward pass of each layer begins on each rank, read off the labels that lowering gives."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ropewalk.task.passes.assembly import ranks_of
from ropewalk.task.passes.gradients import Gradients
from ropewalk.task.step import Act, Step

FORWARD = re.compile(r"(?P<layer>.*) forward( \S+)?")
"""Labels of computations and meetings in the forward pass of a layer."""
BACKWARD = re.compile(r"(?P<layer>.*) backward( \S+)?")


def layer_of(label: str, sort: re.Pattern[str]) -> str | None:
    """The layer of whose pass this is a label.

    >>> layer_of("block 3 backward enter", BACKWARD), layer_of("update", BACKWARD)
    ('block 3', None)
    """
    found = sort.fullmatch(label)
    return found["layer"] if found else None


def forward_layers(step: Step) -> tuple[str, ...]:
    """Layers in the order in which their forward passes are first written down: that of the model."""
    by_label = [layer_of(label, FORWARD) for label in step.labels]
    seen = dict.fromkeys(by_label[number] for number in step.label.tolist())
    return tuple(layer for layer in seen if layer is not None)


def first_forward(step: Step) -> dict[tuple[int, str], int]:
    """By rank and layer, the operation with which the rank begins the layer's first forward pass of the step."""
    by_label = [layer_of(label, FORWARD) for label in step.labels]
    found: dict[tuple[int, str], int] = {}
    for operation, number in enumerate(step.label.tolist()):
        layer = by_label[number]
        if layer is not None:
            for rank in ranks_of(step, operation):
                found.setdefault((rank, layer), operation)
    return found


def tail_seconds(gradients: Gradients) -> NDArray[np.float64]:
    """By tensor: seconds of forward passes from the layer that reads it on, of the slowest rank each."""
    base = gradients.base
    layers = forward_layers(base)
    place = {layer: at for at, layer in enumerate(layers)}
    by_label = [layer_of(label, FORWARD) for label in base.labels]
    seconds = np.zeros((len(layers), base.ranks))
    for operation in np.flatnonzero(base.act == Act.COMPUTE).tolist():
        layer = by_label[int(base.label[operation])]
        if layer is not None:
            seconds[place[layer], int(base.rank[operation])] += float(base.amount[operation])
    tail = np.cumsum(seconds.max(axis=1, initial=0.0)[::-1])[::-1]
    return np.array([tail[place[layer]] if layer in place else 0.0 for layer in gradients.layers])
