"""One step in which gradients are handed over by a policy: when each piece moves, and when the next step may begin.

In a chain every tensor has been used by the time the next backward pass begins, so nothing of one step is left on the
network in the next: steps repeat exactly, and one of them is the steady state. `seconds_of` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import StrategyError
from ropewalk.overlap._queue_kernel import run_queue
from ropewalk.overlap.link import Link
from ropewalk.overlap.policy import CreditReturn, CreditWindow, Discipline, OverlapPolicy
from ropewalk.overlap.tensors import Tensors

MOST_PIECES = 4_000_000
"""Pieces of a step beyond which a partition size is surely a slip of units."""


@dataclass(frozen=True, eq=False)
class CutTensors:
    """Tensors cut for the network, in the order in which the queue prefers them."""

    tensor: Ints
    number: Ints
    """Which piece of its tensor."""
    size_bytes: Floats

    def __len__(self) -> int:
        return len(self.tensor)


@dataclass(frozen=True, eq=False)
class OverlapRun:
    """A step from the start of its backward pass to the end of the next forward pass."""

    tensors: Tensors
    link: Link
    policy: OverlapPolicy
    pieces: CutTensors
    order: Ints
    """Pieces in the order in which the network carries them: the same on every worker, or collectives never meet."""
    push_start_s: Floats
    """Start of every piece on the network; of its push where there are pulls."""
    push_end_s: Floats
    pull_start_s: Floats
    """Start of every pull; nan where there are none."""
    pull_end_s: Floats

    @cached_property
    def available_s(self) -> Floats:
        """When every tensor is synchronised and its worker knows."""
        ends = (self.pull_end_s if self.link.duplex else self.push_end_s) + self.link.latency_s
        available = np.zeros(len(self.tensors))
        np.maximum.at(available, self.pieces.tensor, ends)
        return available

    @cached_property
    def forward_start_s(self) -> Floats:
        """When every layer starts in the next forward pass."""
        return self.tensors.forward_start(self.available_s, barrier=self.policy.barrier)

    @property
    def step_s(self) -> float:
        return float(self.forward_start_s[-1] + self.tensors.forward_s[-1])

    @property
    def exposed_s(self) -> float:
        """Seconds of the step in which the GPU waits for the network."""
        return self.step_s - self.tensors.compute_s

    def seconds_of(self, steps: int) -> float:
        """Training steps in a row, from a first forward pass that waits for nothing to the last synchronised tensor."""
        if steps < 1:
            raise StrategyError(f"{steps} steps: give 1 or more")
        last = max(self.tensors.backward_end_s, float(self.available_s.max()))
        return float(self.tensors.forward_s.sum()) + (steps - 1) * self.step_s + last


def cut(tensors: Tensors, policy: OverlapPolicy) -> CutTensors:
    """The pieces of all tensors: those of a tensor behind each other, tensors in the order of the policy."""
    counts = policy.pieces(tensors.size_bytes)
    if counts.sum() > MOST_PIECES:
        raise StrategyError(
            f"pieces of {policy.partition_bytes:g} bytes cut {tensors.total_bytes:g} bytes of {tensors.model} "
            f"into {counts.sum():.3g}: give a partition size of {tensors.total_bytes / MOST_PIECES:.3g} bytes or more"
        )
    preferred = np.arange(len(tensors)) if policy.discipline is Discipline.PRIORITY else tensors.in_ready_order
    repeats = counts.astype(np.int64)[preferred]
    tensor = np.repeat(preferred, repeats)
    first = np.repeat(np.cumsum(repeats) - repeats, repeats)
    number = np.arange(len(tensor)) - first
    sizes = tensors.size_bytes[tensor]
    if policy.partition_bytes < inf:
        sizes = np.clip(sizes - number * policy.partition_bytes, 0.0, policy.partition_bytes)
    return CutTensors(tensor.astype(np.int64), number.astype(np.int64), sizes)


def schedule(tensors: Tensors, link: Link, policy: OverlapPolicy) -> OverlapRun:
    """Run one step and say when everything happens.

    The example drawn in ByteScheduler's documentation: layers of 2 s each way, tensors of 3, 6 and 3 s.

    >>> from ropewalk.overlap.link import ExchangeKind
    >>> from ropewalk.overlap.policy import fifo
    >>> from ropewalk.overlap.tensors import from_layers
    >>> tensors = from_layers([3, 6, 3], backward_s=[2, 2, 2], forward_s=[2, 2, 2])
    >>> server = Link(bandwidth=1, kind=ExchangeKind.PARAMETER_SERVER)
    >>> schedule(tensors, server, fifo()).step_s, schedule(tensors, server, OverlapPolicy(partition_bytes=1)).step_s
    (26.0, 18.0)
    """
    pieces = cut(tensors, policy)
    largest = float(pieces.size_bytes.max())
    if policy.window is CreditWindow.SKIP and 0 < policy.credit_bytes < largest:
        raise StrategyError(
            f"a piece of {largest:g} bytes never fits a credit of {policy.credit_bytes:g} bytes: "
            "give a larger credit or a smaller partition size"
        )
    ready = tensors.ready_s[pieces.tensor]
    times = run_queue(
        pieces.size_bytes, ready, np.argsort(ready, kind="stable"),
        (link.throughput, link.bandwidth), link.start_up_s, link.latency_s, link.duplex,
        policy.credit_bytes, policy.window is CreditWindow.SKIP, policy.credit_return is CreditReturn.PULL,
    )  # fmt: skip
    return OverlapRun(tensors, link, policy, pieces, *times)


def step_seconds(tensors: Tensors, link: Link, policy: OverlapPolicy) -> float:
    """The time of a step alone, for searches."""
    return schedule(tensors, link, policy).step_s
