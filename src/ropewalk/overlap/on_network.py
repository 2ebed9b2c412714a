"""A plan of communication on a real network: tensors and launches become steps that the flow simulator runs.

The models of this package see one resource that carries one thing at a time. These functions hand the very same plan to
the network: on a quiet fabric both agree to rounding, on a shared one the difference is what the model does not see.
Parameter servers are not collectives of a step and stay with the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.errors import WorkloadError
from ropewalk.overlap.groups import Arrival
from ropewalk.overlap.launches import Launches
from ropewalk.overlap.scheduler import OverlapRun
from ropewalk.overlap.tensors import Tensors
from ropewalk.task.passes import Gradients, credit, in_launch_order, pack, stream
from ropewalk.task.passes.data_parallel import data_parallel
from ropewalk.task.passes.gradients import Arrival as StepArrival

ROUNDING = 1e-9
ARRIVALS = {
    Arrival.TOGETHER: StepArrival.TOGETHER,
    Arrival.GATHERED: StepArrival.GATHERED,
    Arrival.THROUGH: StepArrival.THROUGH,
}


def gradients_of(tensors: Tensors, ranks: int, ring: Sequence[int] = ()) -> Gradients:
    """A step of data-parallel ranks with these tensors, launched one by one as they appear.

    `ring` is the order in which a ring goes round the ranks, from the first to the last unless given.
    """
    ends = np.cumsum(tensors.backward_s[::-1])[::-1][tensors.layer]
    apart = np.abs(ends - tensors.ready_s) > ROUNDING * max(tensors.compute_s, ROUNDING)
    if apart.any():
        at = int(np.flatnonzero(apart)[0])
        raise WorkloadError(
            f"{tensors.names[at]} is ready {tensors.ready_s[at]:g} s after the backward pass began, but its layer ends "
            f"at {ends[at]:g} s: on a network gradients exist when their layer ends; leave out ready_s"
        )
    return data_parallel(
        ranks,
        tensors.size_bytes.tolist(),
        tensors.forward_s.tolist(),
        tensors.backward_s.tolist(),
        layer=tensors.layer.tolist(),
        names=tensors.names,
        layer_names=tensors.layer_names,
        ring=ring,
    )


def as_launched(gradients: Gradients, launches: Launches) -> Gradients:
    """The launches of a plan for a library that works in order, one at a time.

    Where all tensors of a group arrive together, a launch that moves a part of the group moves that part of each of its
    tensors: none is there before the last launch of the group is over.
    """
    sizes = gradients.tensor_bytes
    members = launches.groups.members
    totals = [float(sizes[list(group)].sum()) for group in members]
    numbers = np.cumsum(launches.begins) - 1
    pieces = [np.flatnonzero(numbers == number) for number in range(launches.count)]
    if launches.arrival is Arrival.TOGETHER:
        plan = []
        for own in pieces:
            group = int(launches.group[own[0]])
            part = float(launches.size_bytes[own].sum()) / totals[group] if totals[group] else 1.0
            plan.append([(tensor, part) for tensor in members[group]])
    elif launches.arrival is Arrival.THROUGH:
        plan = [
            [
                (int(launches.tensor[at]), _part(float(launches.size_bytes[at]), float(sizes[launches.tensor[at]])))
                for at in own
            ]
            for own in pieces
        ]
    else:
        if launches.count > len(members):
            raise WorkloadError(
                "a group that is gathered tensor by tensor is cut into several launches: its sum cannot be put aside "
                "in a collective; use in_ready_order, or tensors that go through one by one"
            )
        plan = [[(tensor, 1.0) for tensor in members[int(launches.group[own[0]])]] for own in pieces]
    return stream(pack(gradients, plan), ARRIVALS[launches.arrival])


def as_scheduled(gradients: Gradients, run: OverlapRun) -> Gradients:
    """The pieces of a scheduled step in the order in which the network carried them, one at a time.

    That is a library with one stream of communication: start-ups keep the network waiting, as in the model. The credit
    has done its work when the order was made, and what it hides of `Link.latency_s` is not seen here.
    """
    order = run.order
    plan = [
        [(int(tensor), _part(float(size), float(run.tensors.size_bytes[tensor])))]
        for tensor, size in zip(run.pieces.tensor[order], run.pieces.size_bytes[order], strict=True)
    ]
    return pack(gradients, plan)


def as_handed_over(gradients: Gradients, run: OverlapRun) -> Gradients:
    """The same pieces in the same order, but as many under way at once as the credit allows, first in, first out.

    That is a network that is told what comes next: a piece starts up while the one before is carried, so that starting
    up is what the model calls `Link.latency_s`, and not `Link.start_up_s`.
    """
    return credit(in_launch_order(as_scheduled(gradients, run)), run.policy.credit_bytes)


def _part(size: float, whole: float) -> float:
    return size / whole if whole > 0 else 1.0
