"""GPUs of running jobs on the fabric of a moment: their servers, and the links of flows between them.

What fabrics with circuits have in common: a flow stays inside a server or on a leaf where it can; otherwise the
circuits of its job carry it, which each kind of fabric knows for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import RouteError
from ropewalk.fabric import FabricDraft
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant

Between = Callable[[Allocation, int, int], Sequence[int]]
"""Links from the leaf of one rank of a job to that of another one."""


def wired_inside_servers(draft: FabricDraft, plant: Plant, gpus: NDArray[np.int32]) -> NDArray[np.int32]:
    """The server of each GPU; where servers have several, links inside them are added."""
    server = np.repeat(np.arange(plant.servers, dtype=np.int32), plant.gpus_per_server)
    if plant.gpus_per_server > 1:
        within = draft.add_switches([f"inside {name}" for name in plant.server_names], level=1)
        draft.add_links(gpus, within[server], plant.server_bandwidth)
    return server


@dataclass(frozen=True, eq=False)
class WiredRanks:
    """Which job and rank is on which GPU; NICs have the first links of the fabric."""

    plant: Plant
    inside: int
    """Link of GPU 0 into its server."""
    of_gpu: dict[int, tuple[Allocation, int]]

    @classmethod
    def of(cls, plant: Plant, inside: int, jobs: Sequence[Allocation]) -> WiredRanks:
        return cls(plant, inside, {gpu: (job, rank) for job in jobs for rank, gpu in enumerate(job.gpus)})

    def links(
        self, src: Ints | NDArray[np.int32], dst: Ints | NDArray[np.int32], between: Between
    ) -> tuple[Ints, Ints]:
        """CSR (start, link) of flows between GPUs of one job each."""
        paths = [self.path(a, b, between) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
        start = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
        return start, np.array([link for path in paths for link in path], np.int64)

    def path(self, src: int, dst: int, between: Between) -> list[int]:
        """Links of one flow."""
        plant = self.plant
        if src // plant.gpus_per_server == dst // plant.gpus_per_server:
            return [self.inside + 2 * src, self.inside + 2 * dst + 1]
        if plant.leaf_of_gpu[src] == plant.leaf_of_gpu[dst]:
            return [2 * src, 2 * dst + 1]
        job, rank = self.of_gpu.get(src, (None, 0))
        other, peer = self.of_gpu.get(dst, (None, 0))
        if job is None or job is not other:
            raise RouteError(f"GPUs {src} and {dst} are not of one running job: route between its ranks")
        return [2 * src, *between(job, rank, peer), 2 * dst + 1]
