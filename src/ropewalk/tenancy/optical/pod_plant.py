"""Three tiers with optical switches inside pods: leafs and spines of a pod are joined anew for jobs, cores keep cables.

Every pod is what a whole plant is with two tiers (`OpticalPlant`): a leaf has one fibre to each of the K switches of
its pod, a spine several. Spines at the same place of all pods reach the same cores, as without switches.

>>> from ropewalk.tenancy.plant import plant
>>> small = PodOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=2))
>>> len(small.pods), small.switches, small.spine_fibres.tolist()[:2], small.cores
(4, 2, [[1, 1], [1, 1]], 4)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError, Findings
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True, eq=False, kw_only=True)
class PodOpticalPlant(Plant):
    """A plant whose links between the leafs and spines of pods are circuits, set up when a job starts.

    Its `cables` are those that the switches stand in the middle of.
    """

    reconfiguration_s: float = DEFAULT_RECONFIGURATION_S
    """Charged once, when a job with circuits starts; never to a flow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        findings = Findings(FabricError, f"optical plant {self.name}")
        if not self.cores:
            findings.add("it has two tiers, so there are no pods: put switches between all its leafs and spines")
        if self.rails > 1:
            findings.add("rails below cores have lanes of their own: give one leaf for all GPUs of a server")
        if not self.reconfiguration_s >= 0:
            findings.add(f"setting up circuits takes {self.reconfiguration_s} s: give 0 or more")
        findings.raise_if_any()

    @property
    def packet_spines(self) -> int:
        """Spines that forward packets: all of them."""
        return self.spines

    @cached_property
    def pods(self) -> tuple[OpticalPlant, ...]:
        """Every pod as a plant of its own, with leafs, spines and switches numbered from 0."""
        first_leaf, first_spine = self.tiers.first_leaf.tolist(), self.tiers.first_spine.tolist()
        made = []
        for pod in range(self.tiers.pods):
            leafs, spines = slice(*first_leaf[pod : pod + 2]), slice(*first_spine[pod : pod + 2])
            servers = slice(*self.first_server[first_leaf[pod : pod + 2]].tolist())
            two_tiers = Plant(
                name=f"pod {pod} of {self.name}",
                gpus_per_server=self.gpus_per_server,
                server_leaf=self.server_leaf[servers] - first_leaf[pod],
                cables=self.cables[leafs, spines],
                nic_bandwidth=self.nic_bandwidth,
                link_bandwidth=self.link_bandwidth,
                server_bandwidth=self.server_bandwidth,
                server_names=self.server_names[servers],
                leaf_names=self.leaf_names[leafs],
                spine_names=self.spine_names[spines],
            )
            made.append(OpticalPlant.of_plant(two_tiers, reconfiguration_s=self.reconfiguration_s))
        return tuple(made)

    @property
    def switches(self) -> int:
        """Optical switches of the pod that has most."""
        return max(pod.switches for pod in self.pods)

    @cached_property
    def leaf_fibres(self) -> NDArray[np.bool_]:
        """[leaf, switch of its pod]: is there a fibre?"""
        return np.concatenate([_widened(pod.leaf_fibres, self.switches) for pod in self.pods])

    @cached_property
    def spine_fibres(self) -> NDArray[np.int32]:
        """[spine, switch of its pod]: fibres between the two."""
        return np.concatenate([_widened(pod.spine_fibres, self.switches) for pod in self.pods])

    @classmethod
    def of_plant(cls, plant: Plant, *, reconfiguration_s: float = DEFAULT_RECONFIGURATION_S) -> PodOpticalPlant:
        """The same pods and cores with optical switches in the middle of all cables between leafs and spines."""
        same = {one.name: getattr(plant, one.name) for one in fields(Plant) if one.init}
        return cls(**same | {"name": f"{plant.name}+ocs-pods"}, reconfiguration_s=reconfiguration_s)


def _widened(rows: NDArray[np.generic], columns: int) -> NDArray[np.generic]:
    return np.pad(rows, ((0, 0), (0, columns - rows.shape[1])))
