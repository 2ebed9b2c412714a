"""An all-reduce taken apart: reduce-scatters during the backward pass, all-gathers during the next forward pass.

DeAR (Zhang, Shi, Chu, Wang, Li, Li: DeAR: Accelerating distributed deep learning with fine-grained all-reduce
pipelining, ICDCS 2023). Reduce-scatters follow the backward pass group by group; when it is over, the step waits for
all of them. Then all-gathers follow the order of the forward pass, and the first layer of a group waits for the whole
group. No priorities are needed, but groups trade start-ups against waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.groups import Groups, check_one_resource
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import Tensors

MIB = 1 << 20
THRESHOLDS_MIB = (0.25, 0.5, 1, 2, 4, 8, 16, 25, 32, 64, 128, 256, 512, 1024)
"""Sizes of groups among which `tuned` chooses; 25 MiB is the published default."""


@dataclass(frozen=True, eq=False)
class Dear:
    """Groups, and the step they make."""

    groups: Groups
    step_s: float
    barrier_s: float
    """When all reduce-scatters and the backward pass are over."""
    scatter_s: Floats
    """Begin and end of the reduce-scatter of every group."""
    gather_s: Floats
    """Begin and end of the all-gather of every group."""
    arrival_s: Floats
    """By tensor."""


def dear(tensors: Tensors, link: Link, groups: Groups, rounds_s: float = 0.0) -> Dear:
    """A step with the given groups, which follow the order in which gradients are ready.

    Each half moves half of the bytes and goes through half of the rounds, but is launched on its own: its start-up is
    that of the link less half of `rounds_s`, the part of it that is rounds. Reduce-scatters alone add.
    """
    check_one_resource(link, rounds_s)
    start_up = link.start_up_s - rounds_s / 2
    halves = [link.half_seconds(float(tensors.size_bytes[list(group)].sum())) for group in groups.members]
    scatter, gather = np.zeros((len(groups), 2)), np.zeros((len(groups), 2))
    now = 0.0
    for number, group in enumerate(groups.members):
        now = max(now, float(tensors.ready_s[list(group)].max()))
        scatter[number] = now, now + start_up + halves[number][0]
        now = float(scatter[number, 1])
    barrier = max(now + link.latency_s, tensors.backward_end_s)
    # The forward pass meets the groups in the order of their first layers: the opposite of the backward pass.
    now = barrier
    for number in sorted(range(len(groups)), key=lambda number: min(groups.members[number])):
        gather[number] = now, now + start_up + halves[number][1]
        now = float(gather[number, 1])
    arrival = gather[groups.group_of, 1] + link.latency_s
    return Dear(groups, tensors.step_s(arrival), barrier, scatter, gather, arrival)


def tuned(
    tensors: Tensors, link: Link, rounds_s: float = 0.0, thresholds_mib: Sequence[float] = THRESHOLDS_MIB
) -> Dear:
    """The best of several sizes of groups, as its tuner would find it; of equals the smallest."""
    found = [dear(tensors, link, buckets(tensors, (size * MIB,)), rounds_s) for size in thresholds_mib]
    return min(found, key=lambda one: one.step_s)
