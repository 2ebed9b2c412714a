"""The fabric of a moment on three tiers with circuits above spines, and the links of flows on it, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant


@dataclass(frozen=True, eq=False)
class PodWires:
    """NICs, cables between leafs and spines, a link each way for every circuit, and links inside servers."""

    plant: CoreOpticalPlant
    fabric: Fabric
    circuit: dict[tuple[int, int], int]
    """(spine, switch): link of the circuit away from the spine."""
    inside: int
    """Link of GPU 0 into its server."""
    seat: dict[int, tuple[Allocation, int]] = field(default_factory=dict)
    """GPU: its job and rank."""

    @classmethod
    def of(cls, plant: CoreOpticalPlant, jobs: Sequence[Allocation]) -> PodWires:
        """What is between GPUs while these jobs run."""
        draft = FabricDraft(plant.name)
        names = [f"{server}.{gpu}" for server in plant.server_names for gpu in range(plant.gpus_per_server)]
        gpus = draft.add_hosts(names)
        leafs = draft.add_switches(plant.leaf_names, level=1)
        spines = draft.add_switches(plant.spine_names, level=2)
        cores = draft.add_switches(plant.core_names[plant.switches :], level=3)
        draft.add_links(gpus, leafs[plant.leaf_of_gpu], plant.nic_bandwidth)
        below, above = np.nonzero(plant.cables)
        count = plant.cables[below, above]
        draft.add_links(leafs[np.repeat(below, count)], spines[np.repeat(above, count)], plant.link_bandwidth)
        first = 2 * (plant.gpus + plant.leaf_cables)
        circuit: dict[tuple[int, int], int] = {}
        ends: list[tuple[int, int]] = []
        for job in (one for one in jobs if one.stage == "ocs-core"):
            for rank, ((spine, switch), core) in enumerate(zip(job.core_links, job.core_of_gpu, strict=True)):
                if (spine, switch) in circuit:
                    continue
                circuit[spine, switch] = first + 2 * len(ends)
                if core >= plant.switches:
                    ends.append((int(spines[spine]), int(cores[core - plant.switches])))
                    continue
                far = job.core_links[rank + job.size // 2][0]
                circuit[far, switch] = circuit[spine, switch] + 1
                ends.append((int(spines[spine]), int(spines[far])))
        if ends:
            a, b = np.array(ends).T
            draft.add_links(a, b, plant.link_bandwidth)
        server = np.repeat(np.arange(plant.servers, dtype=np.int32), plant.gpus_per_server)
        if plant.gpus_per_server > 1:
            within = draft.add_switches([f"inside {name}" for name in plant.server_names], level=1)
            draft.add_links(gpus, within[server], plant.server_bandwidth)
        seat = {gpu: (job, rank) for job in jobs for rank, gpu in enumerate(job.gpus)}
        return cls(plant, draft.freeze(server=server), circuit, first + 2 * len(ends), seat)

    def links(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """CSR (start, link) of flows between GPUs of one job each."""
        paths = [self._path(a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
        start = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
        return start, np.array([link for path in paths for link in path], np.int64)

    def _path(self, src: int, dst: int) -> list[int]:
        plant = self.plant
        if src // plant.gpus_per_server == dst // plant.gpus_per_server:
            return [self.inside + 2 * src, self.inside + 2 * dst + 1]
        (job, rank), (other, peer) = self.seat[src], self.seat[dst]
        if job is not other:
            raise RouteError(f"GPUs {src} and {dst} are not of one running job: route between its ranks")
        leaf, far = job.leaf_of_gpu[rank], job.leaf_of_gpu[peer]
        if leaf == far:
            return [2 * src, 2 * dst + 1]
        pods = plant.tiers.pod_of_leaf[[leaf, far]]
        # Down it goes over the spine in the sender's lane of the receiver's pod.
        each = job.size // len(set(plant.tiers.pod_of_leaf[list(job.leafs)].tolist()))
        there = peer // each * each + rank % each
        spine, last = job.spine_of_gpu[rank], job.spine_of_gpu[there]
        up, down = self._cable(job, leaf, spine), self._cable(job, far, last) + 1
        if pods[0] == pods[1]:
            return [2 * src, up, down, 2 * dst + 1]
        rise, fall = self.circuit[job.core_links[rank]], self.circuit[job.core_links[there]]
        between = [rise] if rise // 2 == fall // 2 else [rise, fall + 1]
        return [2 * src, up, *between, down, 2 * dst + 1]

    def _cable(self, job: Allocation, leaf: int, spine: int) -> int:
        at = job.links.index((leaf, spine))
        return int(self.plant.leaf_up(leaf, spine, job.cables[at] if job.cables else 0))
