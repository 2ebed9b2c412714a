"""The gradients of a lowered model, layer by layer: what all passes start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ropewalk.errors import GraphError
from ropewalk.strategy.memory import gradient_bytes
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.prices import PriceList, Prices
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower import lower
from ropewalk.task.passes.forward import BACKWARD, forward_layers, layer_of
from ropewalk.task.passes.gradients import Gradients, gradients_in
from ropewalk.task.step import Act, Step
from ropewalk.workload.workload import Workload

GRADIENTS = "gradients"
"""What lowering labels the collectives on gradients."""


def lowered_apart(
    workload: Workload, strategy: Strategy, placement: Placement, prices: Prices | PriceList
) -> Gradients:
    """Lower a model with one all-reduce for the gradients of every layer, and lift them out of the step.

    They are launched as soon as they exist, one after the other; passes put them together and in other orders.
    """
    if strategy.zero or not strategy.overlap_gradients:
        raise GraphError(
            f"gradients under ZeRO-{strategy.zero}{'' if strategy.overlap_gradients else ', after the backward pass'}: "
            "their order can be planned where all ranks hold all parameters and overlap is on; give zero 0 and "
            "overlap_gradients"
        )
    listed = prices if isinstance(prices, PriceList) else PriceList(prices)
    shares = shares_of(workload.at_batch(strategy.micro_batch), strategy)
    counts = [count for share in shares for count in (share.parameters, share.expert_parameters, share.tied) if count]
    # Every bucket is full with its first layer.
    smallest = min(counts, default=1) * gradient_bytes(strategy, listed.element_bytes)
    single = replace(strategy, bucket_bytes=smallest)
    step = lower(workload, single, replace(placement, strategy=single), listed, detail="layer")
    return gradients_of_layers(step)


def gradients_of_layers(step: Step) -> Gradients:
    """Lift the gradients out of a step that was lowered layer by layer; a tensor is named after its layer."""
    layers = forward_layers(step)
    place = {layer: at for at, layer in enumerate(layers)}
    tensor = np.full(step.operations, -1, np.int64)
    summed = (step.act == Act.ALL_REDUCE) & (step.label == _number(step, GRADIENTS))
    for at in np.flatnonzero(summed).tolist():
        awaited = step.dep[step.dep_start[at] : step.dep_start[at + 1]]
        makers = [layer_of(step.name_of(int(one)), BACKWARD) for one in awaited if not summed[one]]
        if not makers or makers[-1] is None or makers[-1] not in place:
            raise GraphError(
                f"the gradients of operation {at} do not follow the backward pass of a layer: lower with detail layer "
                "and overlap_gradients"
            )
        tensor[at] = place[makers[-1]]
    used = np.unique(tensor[summed])
    packed = np.where(summed, np.searchsorted(used, tensor), -1)
    return gradients_in(
        # A layer's gradient is one collective here, however many buckets it would fill.
        replace(step, repeats=np.where(summed, 1, step.repeats).astype(np.int32)),
        packed,
        [layers[at] for at in used],
    )


def _number(step: Step, label: str) -> int:
    return step.labels.index(label) if label in step.labels else -1
