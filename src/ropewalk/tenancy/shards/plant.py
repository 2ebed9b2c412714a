"""Servers behind patch panels: port i of every server ends on panel i, which joins any ports one to one.

There is no switch between servers. A shard is any set of servers; what is patched for it joins them to each other and
to nobody else. Ports are the NICs that the servers have anyway, one for each GPU. A fibre sends and another receives,
and the robot moves each by itself, so that rings of any length can be patched.

A panel has a limited number of ports. Where there are more servers, racks stand in *islands* with panels of their own:
no cable leads from one to another, so a shard stays in one.

>>> from ropewalk.tenancy.plant import plant
>>> behind = PanelPlant.of_plant(plant("leaf-spine:4x8x8", gpus_per_server=4))
>>> behind.servers, behind.ports, behind.spines, behind.panels, behind.islands
(8, 4, 0, 2, 1)
>>> PanelPlant.of_plant(plant("leaf-spine:4x8x8", gpus_per_server=4), panel_ports=5).island_of_rack.tolist()
[0, 0, 1, 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.codesign.sharing import FLIP_S, PANEL_PORTS, PATCH_S
from ropewalk.errors import FabricError, Findings
from ropewalk.tenancy.plant import Plant

LOOK_AHEAD = 2
"""Panels for each port where one is patched while the other is in use."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PanelPlant(Plant):
    """A plant whose servers are joined by patch panels alone; its leafs are racks without a switch."""

    patch_s: float = PATCH_S
    """From the order to patch a shard until its last fibre is in place."""
    flip_s: float = FLIP_S
    """From one panel of a port to its other one: a 1x2 optical switch."""
    panels: int = LOOK_AHEAD
    """Panels for each port: 1, or 2 of which one is patched ahead."""
    panel_ports: int = PANEL_PORTS
    """Servers that one panel can join."""

    def __post_init__(self) -> None:
        super().__post_init__()
        findings = Findings(FabricError, f"panels of {self.name}")
        if self.panels not in (1, LOOK_AHEAD):
            findings.add(f"a port leads to {self.panels} panels: give 1, or 2 to patch ahead")
        if self.servers_per_leaf.max(initial=0) > self.panel_ports:
            findings.add(
                f"a rack of {self.servers_per_leaf.max()} servers needs a port for each, and a panel has "
                f"{self.panel_ports}: give smaller racks"
            )
        for what, seconds in (("patching a shard", self.patch_s), ("a change of panels", self.flip_s)):
            if not 0 <= seconds < np.inf:
                findings.add(f"{what} takes {seconds} s: give 0 or more")
        findings.raise_if_any()

    @property
    def ports(self) -> int:
        """Ports of a server: one for each GPU."""
        return self.gpus_per_server

    @cached_property
    def island_of_rack(self) -> Ints:
        """Island of every rack: neighbours together, as few islands as ports allow, and those of like size."""
        return _islands(self.servers_per_leaf, self.panel_ports)

    @cached_property
    def island_of_server(self) -> Ints:
        return np.asarray(self.island_of_rack[self.server_leaf], np.int64)

    @property
    def islands(self) -> int:
        """Groups of racks that have their panels in common."""
        return int(self.island_of_rack[-1]) + 1

    @classmethod
    def of_plant(
        cls, plant: Plant, *, patch_s: float = PATCH_S, panels: int = LOOK_AHEAD, panel_ports: int = PANEL_PORTS
    ) -> PanelPlant:
        """The same servers in the same racks, with their NICs on panels instead of switches."""
        return cls(
            name=f"{plant.name}+panels",
            gpus_per_server=plant.gpus_per_server,
            server_leaf=plant.server_unit,
            cables=np.zeros((plant.units, 0), np.int32),
            nic_bandwidth=plant.nic_bandwidth,
            link_bandwidth=plant.nic_bandwidth,
            server_bandwidth=plant.server_bandwidth,
            server_names=plant.server_names,
            leaf_names=plant.unit_names,
            patch_s=patch_s,
            panels=panels,
            panel_ports=panel_ports,
        )


def _islands(servers: Ints, ports: int) -> Ints:
    """Racks in their order, no island with more servers than ports: fewest islands, then the smallest largest one."""
    count = -(-int(servers.sum()) // ports)
    while True:
        first = max(-(-int(servers.sum()) // count), int(servers.max()))
        for most in range(first, ports + 1):
            island = np.zeros(len(servers), np.int64)
            number = held = 0
            for rack, here in enumerate(servers.tolist()):
                if held + here > most:
                    number, held = number + 1, 0
                island[rack], held = number, held + here
            if number < count:
                return island
        count += 1
