"""The fabric of a moment on three tiers with circuits inside pods, and the links of flows on it, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.circuits import ends_of, shape_over_pods
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.seats import WiredRanks, wired_inside_servers


@dataclass(frozen=True, eq=False)
class InsideWires:
    """NICs, a link each way for every circuit, cables between spines and cores, and links inside servers."""

    plant: PodOpticalPlant
    fabric: Fabric
    circuit: dict[tuple[int, int], int]
    """(leaf, switch of its pod): link of the circuit up from the leaf."""
    above: int
    """Link up the first cable to a core."""
    seats: WiredRanks

    @classmethod
    def of(cls, plant: PodOpticalPlant, jobs: Sequence[Allocation]) -> InsideWires:
        """What is between GPUs while these jobs run."""
        draft = FabricDraft(plant.name)
        gpus = draft.add_hosts(
            [f"{server}.{gpu}" for server in plant.server_names for gpu in range(plant.gpus_per_server)]
        )
        leafs = draft.add_switches(plant.leaf_names, level=1)
        spines = draft.add_switches(plant.spine_names, level=2)
        cores = draft.add_switches(plant.core_names, level=3)
        draft.add_links(gpus, leafs[plant.leaf_of_gpu], plant.nic_bandwidth)
        held = [ends_of(plant, job) for job in jobs]
        leaf = np.concatenate([np.zeros(0, np.int64), *(ends.leaf for ends in held)])
        spine = np.concatenate([np.zeros(0, np.int64), *(ends.spine for ends in held)])
        switch = np.concatenate([np.zeros(0, np.int64), *(ends.switch for ends in held)])
        if len(leaf):
            draft.add_links(leafs[leaf], spines[spine], plant.link_bandwidth)
        first = 2 * plant.gpus
        circuit = {ends: first + 2 * at for at, ends in enumerate(zip(leaf.tolist(), switch.tolist(), strict=True))}
        below, over = np.nonzero(plant.core_cables)
        count = plant.core_cables[below, over]
        draft.add_links(spines[np.repeat(below, count)], cores[np.repeat(over, count)], plant.link_bandwidth)
        above = first + 2 * len(leaf)
        server = wired_inside_servers(draft, plant, gpus)
        inside = above + 2 * int(plant.core_cables.sum(dtype=np.int64))
        return cls(plant, draft.freeze(server=server), circuit, above, WiredRanks.of(plant, inside, jobs))

    def links(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """CSR (start, link) of flows between GPUs of one job each."""
        return self.seats.links(src, dst, self._between)

    def _between(self, job: Allocation, rank: int, peer: int) -> list[int]:
        pods, leafs, lanes = shape_over_pods(self.plant, job) if job.stage == "ocs-pods" else (1, 0, len(job.spines))
        # Down it goes over the sender's lane of the receiver's virtual leaf.
        up, down = self._circuit(job, rank), self._circuit(job, peer // lanes * lanes + rank % lanes) + 1
        each = leafs * lanes
        if pods == 1 or rank // each == peer // each:
            return [up, down]
        there = peer // each * each + rank % each
        return [up, self._to_core(job, rank), self._to_core(job, there) + 1, down]

    def _circuit(self, job: Allocation, rank: int) -> int:
        return self.circuit[job.links[rank][0], job.cables[rank]]

    def _to_core(self, job: Allocation, rank: int) -> int:
        spine, core = job.core_links[rank]
        first = self.plant.first_core_cable[spine, core] - self.plant.leaf_cables
        return self.above + 2 * int(first + (job.core_cables[rank] if job.core_cables else 0))
