"""What no scheme on a ring can beat: computing, the wire, the adder, and one tensor's way around the ring."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.preemptive import preemptive_jobs
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.tensors import Tensors


@dataclass(frozen=True)
class StreamBounds:
    """Lower bounds of a step on a ring, each valid on its own, for any cuts, any order and all three overlaps."""

    computing_s: float
    """Nothing had to be synchronised."""
    wire_s: float
    """The preemptive optimum of the ports: the best order if cuts, launches and mixing cost nothing."""
    mixing_s: float
    """The preemptive optimum of the adders: the best order if sending cost nothing but latency."""
    latency_s: float
    """One tensor alone: its rounds one after the other, between its gradient and the layer that waits for it."""

    @property
    def step_s(self) -> float:
        return max(self.computing_s, self.wire_s, self.mixing_s, self.latency_s)

    def in_words(self) -> str:
        """Which of the bounds is the largest."""
        said = {
            "compute takes that long": self.computing_s,
            "the network is the limit, even in the best order": self.wire_s,
            "the reduction is the limit, even in the best order": self.mixing_s,
            "the rounds of the last gradient are the limit": self.latency_s,
        }
        return max(said, key=lambda words: said[words])


def stream_bounds(tensors: Tensors, ring: RankRing) -> StreamBounds:
    """Preemptive optima (Jackson's rule) of each resource with what must come before and behind its work.

    A tensor's last byte leaves the port a latency before it is complete. Nothing of it is mixed before a first message
    has arrived, and behind the last addition lies a whole broadcast of that shard.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> tensors = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)
    >>> stream_bounds(tensors, RankRing(ranks=2, bandwidth=1)).step_s
    17.0
    """
    # Updates may be done while the GPU waits for something else.
    sums = one_stream_sums(replace(tensors, forward_s=tensors.forward_s - tensors.update_s))
    hop = ring.latency_s + ring.message_s
    moved = sums.size_bytes
    head, tail = sums.head_s, sums.tail_s
    wire = preemptive_jobs(head, moved * ring.wire_s(1.0), tail + ring.latency_s).value_s
    mixing = preemptive_jobs(head + hop, moved * ring.mix_s(1.0), tail + ring.rounds * hop).value_s
    return StreamBounds(tensors.compute_s, wire, mixing, float(np.max(head + ring.rounds_s + tail)))
