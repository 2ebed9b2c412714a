"""Three tiers with optical switches between spines and cores: pods keep their cables and are joined anew for jobs.

Every spine has one fibre to each of K switches, every core several, as leafs and spines have on two tiers. So a spine
need not reach the cores of its lane, two fibres of it may lead to one core, and spines of two pods may be joined
without one. The cores of the `Plant` are the optical switches, then the cores that forward packets.

>>> from ropewalk.tenancy.plant import plant
>>> small = CoreOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=2))
>>> small.switches, small.packet_cores, small.core_fibres.tolist()
(2, 4, [[2, 2], [2, 2], [2, 2], [2, 2]])
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.parameters import numbered
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S, spread_over
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreOpticalPlant(Plant):
    """A plant whose links between spines and cores are circuits, set up when a job starts."""

    core_fibres: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[packet core, switch]: fibres between the two."""
    home_cables: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[spine, packet core]: cables that the switches stand in the middle of; none where they never were."""
    reconfiguration_s: float = DEFAULT_RECONFIGURATION_S
    """Charged once, when a job with circuits starts; never to a flow."""

    def __post_init__(self) -> None:
        fibres = np.array(self.core_fibres, np.int32)
        home = np.array(self.home_cables, np.int32)
        if not home.size:
            home = np.zeros((np.shape(self.core_cables)[0], fibres.shape[0]), np.int32)
        for name, array in (("core_fibres", fibres), ("home_cables", home)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        super().__post_init__()
        findings = Findings(FabricError, f"optical plant {self.name}")
        if fibres.ndim != 2 or self.switches + self.packet_cores != self.cores or not fibres.size:
            findings.add(
                f"core fibres are {' x '.join(map(str, fibres.shape))} for {self.cores} cores and switches together: "
                "give a row for each core and a column for each switch"
            )
        elif fibres.min() < 0:
            findings.add(f"a core has {fibres.min()} fibres to a switch: give 0 or more")
        elif self.core_cables[:, self.switches :].any():
            findings.add("a spine has a cable to a core: lead all of them through the switches")
        elif self.core_cables.max(initial=0) > 1:
            findings.add(f"a spine has {self.core_cables.max()} fibres to one switch: give it one to each")
        if home.shape != (self.spines, self.packet_cores):
            findings.add(f"home cables are {' x '.join(map(str, home.shape))}: give a row for each spine, or none")
        if self.rails > 1:
            findings.add("rails below cores have lanes of their own: give one leaf for all GPUs of a server")
        if not self.reconfiguration_s >= 0:
            findings.add(f"setting up circuits takes {self.reconfiguration_s} s: give 0 or more")
        findings.raise_if_any()

    @property
    def switches(self) -> int:
        """Optical switches: cores 0 to switches - 1 where a plant must name them."""
        return int(self.core_fibres.shape[1])

    @property
    def packet_cores(self) -> int:
        """Cores that forward packets: core c is number switches + c."""
        return int(self.core_fibres.shape[0])

    @classmethod
    def of_plant(cls, plant: Plant, *, reconfiguration_s: float = DEFAULT_RECONFIGURATION_S) -> CoreOpticalPlant:
        """The same pods and cores with optical switches in the middle of all cables between spines and cores.

        There are as many switches as the widest spine has cables up; the ports of cores are spread evenly over them.
        """
        if not plant.cores:
            raise FabricError(f"{plant.name} has no cores: put switches between its leafs and spines")
        ups = plant.core_cables.sum(axis=1, dtype=np.int64)
        switches = int(ups.max(initial=0))
        same = {one.name: getattr(plant, one.name) for one in fields(Plant) if one.init}
        fibres = (np.arange(switches) < ups[:, None]).astype(np.int32)
        return cls(
            **same
            | {
                "name": f"{plant.name}+ocs",
                "core_cables": np.hstack([fibres, np.zeros((plant.spines, plant.cores), np.int32)]),
                "core_names": (*numbered("ocs", switches), *plant.core_names),
            },
            core_fibres=spread_over(switches, plant.core_cables.sum(axis=0, dtype=np.int64)),
            home_cables=np.minimum(plant.core_cables, 1),
            reconfiguration_s=reconfiguration_s,
        )
