"""The leafs of a lab that is up as devices: their addresses, and a shell in the namespace of each."""

from __future__ import annotations

import os
from collections import defaultdict
from ipaddress import IPv4Address, IPv4Network, summarize_address_range

from ropewalk.errors import LabError
from ropewalk.export.cluster.addresses import AddressPlan, Cable
from ropewalk.lab import state as labs
from ropewalk.lab.lifecycle import network_of
from ropewalk.lab.namespaces import held
from ropewalk.lab.network import LabNetwork, host_address, link_address
from ropewalk.lab.state import LabState
from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.reach import Reach
from ropewalk.tenancy.plant import Plant


def lab_named(name: str) -> LabState:
    """A lab that is up."""
    state = labs.read(name)
    if not state.holder.alive:
        raise LabError(f"lab {name!r} has ended: bring it up again with `ropewalk lab up`")
    return state


def lab_addresses(plant: Plant, network: LabNetwork) -> AddressPlan:
    """The addresses of a lab by the numbers of its plant: host g is GPU g, leafs and spines have the same names.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x2x4", gpus_per_server=1)
    >>> plan = lab_addresses(small, LabNetwork(small.fabric()))
    >>> str(plan.subnets[1]), str(plan.nics[4]), str(plan.next_hops[1, 0, 0])
    ('10.0.0.132/30', '10.0.0.132', '172.16.0.21')
    """
    fabric = network.fabric
    number = {name: node for node, name in enumerate(fabric.node_names)}
    known = {*plant.leaf_names, *plant.spine_names} <= number.keys()
    if not known or fabric.hosts != plant.gpus:
        raise LabError(
            f"the lab is {fabric.name}, and the cluster {plant.name} of {plant.gpus} GPUs: bring up a lab of the same "
            f"leaf-spine network, such as `ropewalk lab up {plant.name}`"
        )
    cables = _cables(network)
    hops: dict[Cable, IPv4Address] = {}
    for leaf, leaf_name in enumerate(plant.leaf_names):
        for spine, spine_name in enumerate(plant.spine_names):
            between = cables.get((number[leaf_name], number[spine_name]), [])
            hops |= {(leaf, spine, at): hop for at, hop in enumerate(between[: int(plant.cables[leaf, spine])])}
    plan = AddressPlan(
        tuple(_subnet(plant, leaf) for leaf in range(plant.leafs)),
        tuple(IPv4Address(host_address(gpu)) for gpu in range(plant.gpus)),
        hops,
    )
    plan.check(plant)
    return plan


def lab_reach(state: LabState, timeout_s: float) -> Reach:
    """A shell in the namespace of each node."""
    number = {name: node for node, name in enumerate(network_of(state).fabric.node_names)}
    holder = state.holder
    apart = holder.alive and _user_namespace(holder.pid) != _user_namespace("self")
    user = [f"--user=/proc/{holder.pid}/ns/user", "--preserve-credentials"] if apart else []

    def prefix(device: str) -> list[str]:
        if not holder.alive:
            raise DriverError(f"lab {state.name!r} has ended: bring it up again and restart the service")
        return ["nsenter", *user, f"--net={held(holder.pid, number[device])}"]

    return Reach(prefix, timeout_s)


def _cables(network: LabNetwork) -> dict[tuple[int, int], list[IPv4Address]]:
    """(leaf node, spine node) -> addresses of the spine's ends, in the order of cables."""
    found: dict[tuple[int, int], list[IPv4Address]] = defaultdict(list)
    for cable, one in sorted(network.cables.items()):
        found[one.nodes].append(IPv4Address(link_address(cable, 1)))
        found[one.nodes[::-1]].append(IPv4Address(link_address(cable, 0)))
    return found


def _subnet(plant: Plant, leaf: int) -> IPv4Network:
    first = int(plant.first_server[leaf]) * plant.gpus_per_server
    last = int(plant.first_server[leaf + 1]) * plant.gpus_per_server - 1
    ends = (IPv4Address(host_address(gpu)) for gpu in (first, last))
    networks = list(summarize_address_range(*ends))
    if len(networks) > 1:
        raise LabError(
            f"{plant.leaf_names[leaf]} has {last - first + 1} hosts per leaf, whose addresses do not form a subnet: "
            "bring up a lab "
            "with 1, 2, 4, 8, … hosts on every leaf"
        )
    return networks[0]


def _user_namespace(process: int | str) -> int:
    return os.stat(f"/proc/{process}/ns/user").st_ino
