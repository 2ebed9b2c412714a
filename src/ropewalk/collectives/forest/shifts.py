"""Shifts of a network: how every vertex moves when a fabric is carried onto itself, one shift for every member."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import ProofError
from ropewalk.fabric.translation import Translations


@dataclass(frozen=True, eq=False)
class Shifts:
    """The shifts of a network whose members are all alike; shift h takes member 0 to member h.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import IdealSwitch
    >>> shifts_of(network_of(IdealSwitch(4).build())).moved(3).tolist()  # the switch stays where it is
    [3, 0, 1, 2, 4]
    """

    network: Network
    hosts: Translations

    def moved(self, by: int) -> Ints:
        """The vertex that every vertex goes to when member 0 goes to `by`."""
        result = np.arange(self.network.vertices)
        for generator, steps in zip(self.hosts.generators.tolist(), self._digits(by), strict=True):
            result = self._powers[generator][steps][result]
        return result

    def _digits(self, by: int) -> list[int]:
        """How many steps of each generator take member 0 to `by`."""
        sides = [side for side in self.hosts.sides if side > 1]
        weights = self.hosts.generators.tolist()
        return [by // weight % side for weight, side in zip(weights, sides, strict=True)]

    @cached_property
    def _powers(self) -> dict[int, list[Ints]]:
        """Every generator taken 0, 1, 2 … times."""
        sides = [side for side in self.hosts.sides if side > 1]
        powers = {}
        for generator, side in zip(self.hosts.generators.tolist(), sides, strict=True):
            once = self._vertices_moved(generator)
            powers[generator] = [np.arange(self.network.vertices)]
            for _ in range(side - 1):
                powers[generator].append(once[powers[generator][-1]])
        return powers

    def _vertices_moved(self, by: int) -> Ints:
        """Hosts move by their digits, switches with the links that end there."""
        fabric, link_at = self.network.fabric, self.hosts.link_at
        hosts = self.hosts.moved(np.arange(fabric.hosts), by)
        image = np.empty(fabric.links, np.int64)
        image[link_at] = link_at[:, hosts]
        vertex = np.concatenate([hosts, np.zeros(fabric.switches, np.int64)])
        for end in (fabric.link_src, fabric.link_dst):
            at_switch = end >= fabric.hosts
            vertex[end[at_switch]] = end[image[at_switch]]
        return vertex

    def check(self) -> None:
        """Prove that one step of every generator carries arcs onto arcs of their class, equally wide."""
        network = self.network
        key = network.tail * network.vertices + network.head
        order = np.argsort(key)
        for generator in self.hosts.generators.tolist():
            vertex = self._powers[generator][1]
            wanted = vertex[network.tail] * network.vertices + vertex[network.head]
            at = np.searchsorted(key[order], wanted)
            image = order[np.minimum(at, network.arcs - 1)]
            alike = (key[image] == wanted) & (network.arc_class[image] == network.arc_class)
            if not alike.all() or any(network.capacity[a] != network.capacity[b] for a, b in enumerate(image.tolist())):
                raise ProofError(
                    f"the shift of host 0 to host {generator} does not carry {network.fabric.name} onto itself"
                )
        reached = {int(self.moved(member)[0]) for member in network.members.tolist()}
        if reached != set(network.members.tolist()):
            raise ProofError(f"the shifts of {network.fabric.name} do not take host 0 to every member")


def shifts_of(network: Network) -> Shifts:
    """The shifts of a network that has a symmetry."""
    assert network.symmetry is not None
    return Shifts(network, network.symmetry)
