"""What the loops of snapshots read and fill: jobs laid end to end, where they are at drawn moments, what they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.tenancy.footprint import Footprint


class LaidJobs(NamedTuple):
    """Jobs, phases and flows end to end; job j has phases from `phase_start[j]`, phase p flows from `flow_start[p]`."""

    phase_start: Ints
    floor_s: Floats
    flow_s: Floats
    alone_s: Floats
    nic_flows: Floats
    rounds: Floats
    flow_start: Ints
    path: Ints32
    share: Floats
    lasts: Floats


class DrawnMoments(NamedTuple):
    """Where jobs are in each snapshot.

    Job j is `moment[j]` of the way through its iteration, which begins with its communication; `window_s` is how long
    others find phases to take, in iterations of `iteration_s`. Independently of that, its phase at `probe[j]` of its
    communication over links is tried out among the others.
    """

    window_s: Floats
    iteration_s: Floats
    moment: Floats
    probe: Floats


class SeenPhases(NamedTuple):
    """What is found for every (job, snapshot).

    How much longer the probed phase takes than alone, how many of its flows meet others, and which phase that is, -1
    for none.
    """

    stretch: Floats
    met: Floats
    probed: Ints


def laid(footprints: Sequence[Footprint]) -> LaidJobs:
    """Jobs as the loops read them."""
    flows = np.concatenate([np.diff(one.flow_start) for one in footprints])
    return LaidJobs(
        np.concatenate([[0], np.cumsum([len(one.exchange) for one in footprints])]).astype(np.int64),
        np.concatenate([one.floor_s for one in footprints]),
        np.concatenate([one.flow_s for one in footprints]),
        np.concatenate([one.alone_s for one in footprints]),
        np.concatenate([one.nic_flows for one in footprints]),
        np.concatenate([one.rounds for one in footprints]),
        np.concatenate([[0], np.cumsum(flows)]).astype(np.int64),
        np.concatenate([one.path for one in footprints]),
        np.concatenate([one.share for one in footprints]),
        np.concatenate([one.lasts for one in footprints]),
    )


def nothing_seen(jobs: int, snapshots: int) -> SeenPhases:
    """Room for what jobs will see."""
    shape = (jobs, snapshots)
    return SeenPhases(np.ones(shape), np.zeros(shape), np.zeros(shape, np.int64))
