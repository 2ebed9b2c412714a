"""Gradients lifted out of steps that were lowered layer by layer, by the labels that lowering gives."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from tiny_models import EvenPrices

from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.task.passes import Gradients, gradients_in
from ropewalk.task.passes.assembly import ranks_of
from ropewalk.task.step import Step
from ropewalk.workload.workload import Workload

FORWARD, BACKWARD = (re.compile(rf"(?P<layer>.*) {name}( \S+)?") for name in ("forward", "backward"))


def lowered_gradients(workload: Workload, strategy: Strategy, prices=None) -> Gradients:
    """One all-reduce for the gradients of every layer."""
    single = replace(strategy, order=Order(1.0))
    return gradients_of_layers(lower(workload, single, Placement(single), prices or EvenPrices(), detail="layer"))


def gradients_of_layers(step: Step) -> Gradients:
    names = [FORWARD.fullmatch(step.name_of(at)) for at in range(step.operations)]
    layers = list(dict.fromkeys(found["layer"] for found in names if found))
    tensor = np.full(step.operations, -1, np.int64)
    summed = np.array([step.name_of(at) == "gradients" for at in range(step.operations)])
    for at in np.flatnonzero(summed).tolist():
        awaited = step.dep[step.dep_start[at] : step.dep_start[at + 1]]
        makers = [BACKWARD.fullmatch(step.name_of(int(one))) for one in awaited if not summed[one]]
        tensor[at] = layers.index(makers[-1]["layer"])
    used = np.unique(tensor[summed])
    begins: dict[tuple[int, int], int] = {}
    for at, found in enumerate(names):
        if found and layers.index(found["layer"]) in used:
            for rank in ranks_of(step, at):
                begins.setdefault((int(np.searchsorted(used, layers.index(found["layer"]))), rank), at)
    return gradients_in(
        replace(step, repeats=np.ones(step.operations, np.int32)),
        np.where(summed, np.searchsorted(used, tensor), -1),
        [layers[at] for at in used],
        begins=[(number, at) for (number, _), at in begins.items()],
    )
