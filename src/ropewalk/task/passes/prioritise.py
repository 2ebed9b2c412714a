"""Prioritise: what the next forward pass needs first overtakes on every link.

This is priority *in the network*: a more urgent transfer takes a link at once and the other one waits, byte by byte.
Switches with strict priority queues do that, and with all launches handed over at once (`credit` without limit) it is
the best preemptive order on a quiet fabric. Libraries like NCCL have no such thing: what is handed over runs to its
end, and order is a matter of handing over (`sequence`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import GraphError
from ropewalk.task.passes.gradients import Gradients

Urgency = Callable[[Gradients], Ints]
"""From gradients to a number for every tensor; lower is more urgent."""


def by_consumer(gradients: Gradients) -> Ints:
    """The tensor that the next forward pass reads first is the most urgent; what the pass waits for goes before all."""
    return 1 + np.arange(len(gradients.names))


def prioritise(gradients: Gradients, urgency: Urgency = by_consumer) -> Gradients:
    """Give every launch the urgency of the most urgent tensor in it."""
    urgent = np.asarray(urgency(gradients))
    if urgent.shape != (len(gradients.names),):
        raise GraphError(f"{urgent.size} urgencies for {len(gradients.names)} tensors: give one for each")
    priority = np.full(gradients.launches, np.iinfo(np.int32).max, np.int64)
    np.minimum.at(priority, gradients.launch, urgent[gradients.tensor[gradients.shard]])
    return replace(gradients, priority=priority)


def in_launch_order(gradients: Gradients) -> Gradients:
    """Give launches priority in the order in which they are handed over: the network is a queue, first in, first out.

    With credit, launches that are under way together share links fairly unless something says otherwise. This does: the
    one that was handed over first has all of the link, and the others follow.
    """
    return replace(gradients, priority=1 + gradients.lot)
