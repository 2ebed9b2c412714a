"""What no order of communication can beat: computing alone, the network alone, and both with the best order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ropewalk.overlap.heads_tails import one_stream_sums, step_graph
from ropewalk.overlap.link import Link
from ropewalk.overlap.preemptive import preemptive_optimum
from ropewalk.overlap.tensors import Tensors


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of a step, each valid on its own, for all-reduces whole, cut, fused, taken apart or streamed."""

    computing_s: float
    """The network takes no time."""
    network_s: float
    """All bytes one after the other, from the first gradient to the last layer that waits."""
    any_order_s: float
    """The best order of sums if branches of the model were computed side by side: holds for any number of streams."""
    one_stream_s: float
    """The best order of sums with one stream that computes in the framework's order, which is exact."""

    @property
    def step_s(self) -> float:
        """The largest bound for a GPU with one stream."""
        return max(self.computing_s, self.network_s, self.any_order_s, self.one_stream_s)


def lower_bounds(tensors: Tensors, link: Link) -> Bounds:
    """Bounds without start-up latency: splitting is free, so every schedule of the bytes is one of these all-reduces.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> lower_bounds(from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3), Link(bandwidth=1)).step_s
    17.0
    """
    free = link.without_start_up()
    # Updates may be done while the GPU waits for something else.
    waiting = replace(tensors, forward_s=tensors.forward_s - tensors.update_s)
    sums = one_stream_sums(waiting)
    branches = step_graph(waiting).sums(free)
    # Where gradients were seen earlier than their layers' backward passes add up to, what was seen counts.
    branches = replace(branches, head_s=np.minimum(branches.head_s, tensors.ready_s))
    work = tensors.total_bytes / free.throughput
    return Bounds(
        computing_s=tensors.compute_s,
        network_s=float(sums.head_s.min() + sums.tail_s.min()) + work,
        any_order_s=branches.step_s(preemptive_optimum(branches, free).done_s),
        one_stream_s=sums.step_s(preemptive_optimum(sums, free).done_s),
    )
