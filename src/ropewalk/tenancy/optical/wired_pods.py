"""The fabric of a moment on three tiers with circuits above spines, and the links of flows on it, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.seats import WiredRanks, wired_inside_servers


@dataclass(frozen=True, eq=False)
class PodWires:
    """NICs, cables between leafs and spines, a link each way for every circuit, and links inside servers."""

    plant: CoreOpticalPlant
    fabric: Fabric
    circuit: dict[tuple[int, int], int]
    """(spine, switch): link of the circuit away from the spine."""
    seats: WiredRanks

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
        server = wired_inside_servers(draft, plant, gpus)
        seats = WiredRanks.of(plant, first + 2 * len(ends), jobs)
        return cls(plant, draft.freeze(server=server), circuit, seats)

    def links(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """CSR (start, link) of flows between GPUs of one job each."""
        return self.seats.links(src, dst, self._between)

    def _between(self, job: Allocation, rank: int, peer: int) -> list[int]:
        plant, leaf, far = self.plant, job.leaf_of_gpu[rank], job.leaf_of_gpu[peer]
        pods = plant.tiers.pod_of_leaf[[leaf, far]]
        # Down it goes over the spine in the sender's lane of the receiver's pod.
        each = job.size // len(set(plant.tiers.pod_of_leaf[list(job.leafs)].tolist()))
        there = peer // each * each + rank % each
        spine, last = job.spine_of_gpu[rank], job.spine_of_gpu[there]
        up, down = self._cable(job, leaf, spine), self._cable(job, far, last) + 1
        if pods[0] == pods[1]:
            return [up, down]
        rise, fall = self.circuit[job.core_links[rank]], self.circuit[job.core_links[there]]
        between = [rise] if rise // 2 == fall // 2 else [rise, fall + 1]
        return [up, *between, down]

    def _cable(self, job: Allocation, leaf: int, spine: int) -> int:
        at = job.links.index((leaf, spine))
        return int(self.plant.leaf_up(leaf, spine, job.cables[at] if job.cables else 0))
