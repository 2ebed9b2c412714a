"""Jobs that send 1 GB from every GPU to another one at once, over wires with circuits: their paths and their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.routing import single_paths
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, make_graph
from ropewalk.tenancy.allocation import Allocation

Ints = NDArray[np.int64]


class Wires(Protocol):
    """A plant with circuits as a fabric, and the links of every flow in it."""

    @property
    def fabric(self) -> Fabric: ...

    def links(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]: ...


def shifted_time(wires: Wires, jobs: Sequence[Allocation], shift: int) -> float:
    """Seconds until every GPU has sent 1 GB to that `shift` places on in its job; its path is checked first."""
    src = np.concatenate([job.gpus for job in jobs]).astype(np.int64)
    dst = np.concatenate([np.roll(job.gpus, -(shift % job.size or 1)) for job in jobs]).astype(np.int64)
    order = np.argsort(src)
    src, dst = src[order], dst[order]
    start, link = wires.links(src, dst)
    fabric = wires.fabric
    for flow in range(len(src)):
        path = link[start[flow] : start[flow + 1]]
        assert fabric.link_src[path[0]] == src[flow]
        assert fabric.link_dst[path[-1]] == dst[flow]
        assert (fabric.link_dst[path[:-1]] == fabric.link_src[path[1:]]).all()
    ends = src.astype(np.int32), dst.astype(np.int32)
    routes = single_paths(fabric, *ends, start, link.astype(np.int32))
    flows = len(src)
    graph = make_graph([TaskKind.TRANSFER] * flows, *ends, [1e9] * flows, np.zeros(flows + 1, np.int64), [])
    return float(simulate(graph, routes).makespan)
