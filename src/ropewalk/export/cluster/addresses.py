"""Addresses of a plant: one for every NIC, one subnet a leaf, one next hop for every cable up.

An operator has them already and gives them as a table (`address_files`); for studies `numbered` generates a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.plant import Plant

Cable = tuple[int, int, int]
"""(leaf, spine, which of their parallel cables)."""
NICS = "10.0.0.0/8"
UPLINKS = "172.16.0.0/12"


@dataclass(frozen=True)
class AddressPlan:
    """Everything that leaf rules speak of, by the numbers of the plant."""

    subnets: tuple[IPv4Network, ...]
    """Of every leaf."""
    nics: tuple[IPv4Address, ...]
    """Of every GPU."""
    next_hops: Mapping[Cable, IPv4Address]
    ports: Mapping[int, str] = field(default_factory=dict)
    """GPU -> the leaf's port it hangs on, where known: rules are bound to these ports."""

    @cached_property
    def gpu_at(self) -> dict[IPv4Address, int]:
        return {address: gpu for gpu, address in enumerate(self.nics)}

    @cached_property
    def cable_to(self) -> dict[IPv4Address, Cable]:
        return {address: cable for cable, address in self.next_hops.items()}

    def check(self, plant: Plant) -> None:
        """Every NIC inside the subnet of its leaf, nothing outside it, nothing twice, nothing missing."""
        findings = Findings(ClusterError, f"addresses of {plant.name}")
        if len(self.subnets) != plant.leafs or len(self.nics) != plant.gpus:
            findings.add(
                f"there are {len(self.subnets)} subnets and {len(self.nics)} NICs for {plant.leafs} leafs and "
                f"{plant.gpus} GPUs: give one for each"
            )
            findings.raise_if_any()
        for address, times in Counter([*self.nics, *self.next_hops.values()]).items():
            if times > 1:
                findings.add(f"the address {address} is given {times} times: give each NIC and each uplink its own")
        _check_overlap(self.subnets, plant, findings)
        for gpu, address in enumerate(self.nics):
            leaf = int(plant.leaf_of_gpu[gpu])
            if address not in self.subnets[leaf]:
                there = f"{plant.leaf_names[leaf]}, {self.subnets[leaf]}"
                findings.add(f"{_nic_name(plant, gpu)} has {address}, outside its leaf's subnet ({there}): move it")
        missing = [cable for cable in _cables(plant) if cable not in self.next_hops]
        if missing:
            leaf, spine, cable = missing[0]
            name = f"cable {cable} from {plant.leaf_names[leaf]} to {plant.spine_names[spine]}"
            findings.add(f"{len(missing)} uplinks have no address, the first is {name}: add them")
        findings.raise_if_any()

    @classmethod
    def numbered(cls, plant: Plant, nics: str = NICS, uplinks: str = UPLINKS) -> AddressPlan:
        """A plan by counting: equal subnets for all leafs, NICs from 1 in each, two addresses a cable.

        >>> from ropewalk.tenancy.plant import plant
        >>> plan = AddressPlan.numbered(plant("leaf-spine:2x4x4", gpus_per_server=2))
        >>> str(plan.subnets[1]), str(plan.nics[4]), str(plan.next_hops[1, 0, 0])
        ('10.0.0.8/29', '10.0.0.9', '172.16.0.9')
        """
        size = 1 << (int(plant.gpus_per_leaf.max()) + 1).bit_length()
        bits = 32 - size.bit_length() + 1
        first, links = IPv4Network(nics), IPv4Network(uplinks)
        cables = _cables(plant)
        if size * plant.leafs > first.num_addresses or 2 * len(cables) > links.num_addresses:
            raise ClusterError(
                f"{plant.name} needs {size * plant.leafs} addresses for NICs and {2 * len(cables)} for cables, more "
                f"than {nics} and {uplinks} have: give larger networks"
            )
        subnets = tuple(IPv4Network((int(first.network_address) + leaf * size, bits)) for leaf in range(plant.leafs))
        places = zip(plant.leaf_of_gpu.tolist(), plant.place_on_leaf.tolist(), strict=True)
        return cls(
            subnets,
            tuple(subnets[leaf].network_address + 1 + place for leaf, place in places),
            {cable: links.network_address + 2 * at + 1 for at, cable in enumerate(cables)},
        )


def _check_overlap(subnets: tuple[IPv4Network, ...], plant: Plant, findings: Findings) -> None:
    """In the order of addresses a subnet can only overlap with the one before it."""
    order = sorted(range(len(subnets)), key=lambda leaf: (subnets[leaf].network_address, subnets[leaf].prefixlen))
    for before, after in pairwise(order):
        if subnets[before].overlaps(subnets[after]):
            names = f"{plant.leaf_names[before]} and {plant.leaf_names[after]}"
            findings.add(f"the subnets of {names} overlap ({subnets[before]}, {subnets[after]}): separate them")


def _cables(plant: Plant) -> list[Cable]:
    return [
        (leaf, spine, cable)
        for leaf in range(plant.leafs)
        for spine in range(plant.spines)
        for cable in range(int(plant.cables[leaf, spine]))
    ]


def _nic_name(plant: Plant, gpu: int) -> str:
    server, place = divmod(gpu, plant.gpus_per_server)
    return f"GPU {place} of {plant.server_names[server]}"
