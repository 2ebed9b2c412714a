"""Three tiers with optical switches inside pods: leafs and spines of a pod are joined anew for jobs, cores keep cables.

Every pod is what a whole plant is with two tiers (`OpticalPlant`): a leaf has one fibre to each of the K switches of
its pod, a spine several; every cable of the pod leads through one of them. Spines at the same place of all pods reach
the same cores, as without switches.

>>> from ropewalk.tenancy.plant import plant
>>> small = PodOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=2))
>>> len(small.pods), small.switches, small.spine_fibres.tolist()[:2], small.cores
(4, 2, [[1, 1], [1, 1]], 4)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.parameters import numbered
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, OpticalPlant
from ropewalk.tenancy.plant import Plant

NOWHERE = -1


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
    def switches_of_pod(self) -> Ints:
        """Optical switches of every pod: as many as its widest leaf has cables."""
        ups, first = self.cables.sum(axis=1, dtype=np.int64), self.tiers.first_leaf.tolist()
        return np.array([ups[start:end].max(initial=0) for start, end in pairwise(first)], np.int64)

    @cached_property
    def first_switch(self) -> Ints:
        """Where the switches of every pod begin, if those of all pods are counted through."""
        return np.asarray(np.cumsum(self.switches_of_pod) - self.switches_of_pod, np.int64)

    @property
    def switches(self) -> int:
        """Optical switches of the pod that has most."""
        return int(self.switches_of_pod.max())

    @cached_property
    def home_switch(self) -> Ints:
        """[leaf, spine, cable]: the switch of their pod in the middle of a cable, or -1.

        Cable n of leaf i leads through switch (i + n) mod K: no fibre of a leaf is in two, and those of a spine are
        spread. What is joined in this way is the plant without switches, so these are its *home* circuits.
        """
        leaf, spine = np.nonzero(self.cables)
        count = self.cables[leaf, spine].astype(np.int64)
        leaf, spine, first = np.repeat(leaf, count), np.repeat(spine, count), np.repeat(np.cumsum(count) - count, count)
        number = np.arange(len(leaf))
        cable, of_leaf = number - first, number - np.searchsorted(leaf, leaf)
        found = np.full((*self.cables.shape, max(int(self.cables.max(initial=0)), 1)), NOWHERE, np.int64)
        pod = self.tiers.pod_of_leaf[leaf]
        found[leaf, spine, cable] = (leaf - self.tiers.first_leaf[pod] + of_leaf) % self.switches_of_pod[pod]
        found.setflags(write=False)
        return found

    @cached_property
    def leaf_fibres(self) -> NDArray[np.bool_]:
        """[leaf, switch of its pod]: is there a fibre?"""
        leaf, _, _, switch = self._fibres
        fibres = np.zeros((self.leafs, self.switches), bool)
        fibres[leaf, switch] = True
        return fibres

    @cached_property
    def spine_fibres(self) -> NDArray[np.int32]:
        """[spine, switch of its pod]: fibres between the two."""
        _, spine, _, switch = self._fibres
        fibres = np.zeros((self.spines, self.switches), np.int32)
        np.add.at(fibres, (spine, switch), 1)
        return fibres

    @property
    def _fibres(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(leaf, spine, cable, switch) of every cable."""
        leaf, spine, cable = np.nonzero(self.home_switch != NOWHERE)
        return leaf, spine, cable, self.home_switch[leaf, spine, cable]

    @cached_property
    def pods(self) -> tuple[OpticalPlant, ...]:
        """Every pod as a plant of its own, with leafs, spines and switches numbered from 0."""
        return tuple(self._pod(pod) for pod in range(self.tiers.pods))

    def _pod(self, pod: int) -> OpticalPlant:
        leafs = slice(*self.tiers.first_leaf[pod : pod + 2].tolist())
        spines = slice(*self.tiers.first_spine[pod : pod + 2].tolist())
        servers = slice(*self.first_server[[leafs.start, leafs.stop]].tolist())
        switches = int(self.switches_of_pod[pod])
        fibres = self.leaf_fibres[leafs, :switches].astype(np.int32)
        return OpticalPlant(
            name=f"pod {pod} of {self.name}",
            gpus_per_server=self.gpus_per_server,
            server_leaf=self.server_leaf[servers] - leafs.start,
            cables=np.hstack([np.zeros((len(fibres), spines.stop - spines.start), np.int32), fibres]),
            nic_bandwidth=self.nic_bandwidth,
            link_bandwidth=self.link_bandwidth,
            server_bandwidth=self.server_bandwidth,
            server_names=self.server_names[servers],
            leaf_names=self.leaf_names[leafs],
            spine_names=(*self.spine_names[spines], *self.switch_names(pod)),
            spine_fibres=self.spine_fibres[spines, :switches],
            reconfiguration_s=self.reconfiguration_s,
        )

    def switch_names(self, pod: int) -> tuple[str, ...]:
        """What the optical switches of a pod are called."""
        return tuple(numbered(f"ocs{pod}.", int(self.switches_of_pod[pod])))

    @classmethod
    def of_plant(cls, plant: Plant, *, reconfiguration_s: float = DEFAULT_RECONFIGURATION_S) -> PodOpticalPlant:
        """The same pods and cores with optical switches in the middle of all cables between leafs and spines."""
        same = {one.name: getattr(plant, one.name) for one in fields(Plant) if one.init}
        return cls(**same | {"name": f"{plant.name}+ocs-pods"}, reconfiguration_s=reconfiguration_s)
