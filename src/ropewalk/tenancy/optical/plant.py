"""The optical plant: leafs and spines that meet in optical circuit switches instead of being cabled to each other.

Every leaf has one fibre to each of K switches, every spine has several; a switch joins two fibres one to one. So two
fibres of a leaf may lead to the same spine, a leaf need not reach every spine, and two leafs may be joined without one.
The spines of the `Plant` are those that forward packets, then the optical switches: a leaf's cables are its fibres.

>>> from ropewalk.tenancy.plant import plant
>>> small = OpticalPlant.of_plant(plant("leaf-spine:4x2x4x2", gpus_per_server=2))
>>> small.gpus, small.packet_spines, small.switches, small.ports_per_spine.tolist()
(16, 2, 4, [8, 8])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.parameters import numbered
from ropewalk.tenancy.plant import Plant

DEFAULT_RECONFIGURATION_S = 0.05
"""What OCS-vClos is said to charge a job for setting up its circuits; mirrors themselves turn in about 10 ms."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OpticalPlant(Plant):
    """A plant whose leaf-spine links are circuits, set up when a job starts.

    `fabric()` shows the fibres of the leafs; what can carry bytes are the circuits of a moment, see `wired_fabric`.
    """

    spine_fibres: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[packet spine, switch]: fibres between the two."""
    reconfiguration_s: float = DEFAULT_RECONFIGURATION_S
    """Charged once, when a job with circuits starts; never to a flow."""

    def __post_init__(self) -> None:
        fibres = np.array(self.spine_fibres, np.int32)
        fibres.setflags(write=False)
        object.__setattr__(self, "spine_fibres", fibres)
        super().__post_init__()
        findings = Findings(FabricError, f"optical plant {self.name}")
        if fibres.ndim != 2 or self.packet_spines + self.switches != self.spines:
            findings.add(
                f"spine fibres are {' x '.join(map(str, fibres.shape))} for {self.spines} spines and switches "
                "together: give a row for each spine and a column for each switch"
            )
        elif fibres.size and fibres.min() < 0:
            findings.add(f"a spine has {fibres.min()} fibres to a switch: give 0 or more")
        elif self.cables[:, : self.packet_spines].any():
            findings.add("a leaf has a cable to a spine: lead all of them through the switches")
        elif self.cables.max(initial=0) > 1:
            findings.add(f"a leaf has {self.cables.max()} fibres to one switch: give it one to each, and more switches")
        if not self.reconfiguration_s >= 0:
            findings.add(f"setting up circuits takes {self.reconfiguration_s} s: give 0 or more")
        findings.raise_if_any()

    @property
    def packet_spines(self) -> int:
        """Spines that forward packets: numbers 0 to packet_spines - 1."""
        return int(self.spine_fibres.shape[0])

    @property
    def switches(self) -> int:
        """Optical switches; switch k is spine number packet_spines + k where a plant must name it."""
        return int(self.spine_fibres.shape[1])

    @cached_property
    def leaf_fibres(self) -> NDArray[np.bool_]:
        """[leaf, switch]: is there a fibre?"""
        return np.asarray(self.cables[:, self.packet_spines :] > 0)

    @cached_property
    def ports_per_spine(self) -> NDArray[np.int64]:
        return np.asarray(self.spine_fibres.sum(axis=1), np.int64)

    @classmethod
    def of_plant(cls, plant: Plant, *, reconfiguration_s: float = DEFAULT_RECONFIGURATION_S) -> OpticalPlant:
        """The same servers, leafs and spines with optical switches in the middle of all their cables.

        There are as many switches as the widest leaf has cables; the ports of the spines are spread evenly over them.
        """
        if plant.cores or plant.rails > 1:
            what = "three tiers" if plant.cores else "rails"
            raise FabricError(
                f"{plant.name} has {what}, but optical switches connect leafs and spines of two tiers: use --isolate "
                "vclos"
            )
        ups = plant.cables.sum(axis=1, dtype=np.int64)
        switches = int(ups.max(initial=0))
        if not switches:
            raise FabricError(f"{plant.name} has no leaf-spine cables: there is nothing to put a switch into")
        fibres = (np.arange(switches) < ups[:, None]).astype(np.int32)
        return cls(
            name=f"{plant.name}+ocs",
            gpus_per_server=plant.gpus_per_server,
            server_leaf=plant.server_leaf,
            cables=np.hstack([np.zeros((plant.leafs, plant.spines), np.int32), fibres]),
            nic_bandwidth=plant.nic_bandwidth,
            link_bandwidth=plant.link_bandwidth,
            server_bandwidth=plant.server_bandwidth,
            server_names=plant.server_names,
            leaf_names=plant.leaf_names,
            spine_names=(*plant.spine_names, *numbered("ocs", switches)),
            spine_fibres=spread_over(switches, plant.cables.sum(axis=0, dtype=np.int64)),
            reconfiguration_s=reconfiguration_s,
        )


def spread_over(switches: int, ports: NDArray[np.int64]) -> NDArray[np.int32]:
    """Deal the ports of all spines to the switches in one round after the other, so that no switch gets two more."""
    switch = np.arange(int(ports.sum())) % switches
    spine = np.repeat(np.arange(len(ports)), ports)
    fibres = np.zeros((len(ports), switches), np.int32)
    np.add.at(fibres, (spine, switch), 1)
    return fibres
