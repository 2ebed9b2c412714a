"""From a network (a family, an expression or a file) and servers of GPUs to the fabric that joins them.

>>> server_fabric("leaf-spine", (ServerGroup(2, 8, 450e9, nic_bandwidth=50e9),)).name
'16 GPUs, 8 per server, on leaf-spine:4x4x4'
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ropewalk.errors import FabricError
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.expression import MOST_HOSTS, builder, fabric, has_open_size, is_path, ratio_of, sizing_of
from ropewalk.fabric.fabric import Builder, Fabric
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.in_server import PcieTree
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.rails import RAIL_ONLY, RailSwitches
from ropewalk.fabric.server_fabric import FileFabric, ServerFabric, ServerGroup, ports_of

WIDEST_LEAF = 64
"""Ports of a leaf that go down, where half of the ports of a switch of radix 128 do."""
ONE_SERVER = ("dgx-1v", "dgx-1p", "pcie")
"""Families whose fabrics are the links inside one server."""
WHOLE_SERVERS = ("dgx", "dgx-a100", "dgx-h100", *ONE_SERVER)
"""Families whose fabrics hold the servers themselves."""


def server_fabric(
    network: str | Path, groups: tuple[ServerGroup, ...], *, latency: float | None = None, rails: bool = False
) -> Fabric:
    """The fabric whose hosts are the GPUs of these servers, joined by this network.

    A family without numbers, or with a ratio alone (`leaf-spine:2to1`), is sized to the NICs of all servers, with ports
    to spare where it has no such size. `rail-only` has a switch for each NIC number, and no spines. A complete
    expression or a file is the network outside the servers: its hosts are the NICs. What already has servers (`dgx:2`,
    a file that names them) is taken as it is, and so is a network with as many hosts as GPUs where every server holds
    one: its hosts are the GPUs. A file has its own speeds; other networks have that of the fastest NIC.
    """
    text, gpus = str(network), sum(group.count * group.gpus for group in groups)
    whole = whole_servers(text, gpus, groups, latency)
    if whole is not None:
        return _matching(whole, gpus)
    rails = rails or text == RAIL_ONLY
    outside = _outside(text, groups, latency, rails)
    if outside.hosts == gpus and all(group.gpus == 1 for group in groups) and not _mixed(groups):
        return outside.build()
    if not _mixed(groups):  # the network has the speed of the NICs
        groups = tuple(replace(group, nic_bandwidth=None) for group in groups)
    return ServerFabric(outside, groups, rails).build()


def whole_servers(
    text: str, gpus: int, groups: tuple[ServerGroup, ...] = (), latency: float | None = None
) -> Fabric | None:
    """The fabric where it holds the servers themselves; None where it is a network between servers."""
    if is_path(text):
        found = fabric(text, None, latency)
        return found if found.server is not None else None
    if text.partition(":")[0] not in WHOLE_SERVERS:
        return None
    bandwidth = groups[0].nic_bandwidth if groups and text.partition(":")[0] not in ONE_SERVER else None
    made = builder(text, bandwidth, latency, hosts=gpus if has_open_size(text) else None)
    if isinstance(made, Dgx) and groups:
        made = replace(made, nvlink_bandwidth=groups[0].nvlink_bandwidth)
    elif isinstance(made, PcieTree) and groups:
        made = replace(made, bandwidth=groups[0].nvlink_bandwidth)
    return made.build()


def _outside(text: str, groups: tuple[ServerGroup, ...], latency: float | None, rails: bool) -> Builder:
    """The network between the servers."""
    speed = max((group.nic_bandwidth for group in groups if group.nic_bandwidth is not None), default=None)
    if is_path(text):
        return FileFabric(fabric(text, None, latency))
    if text == RAIL_ONLY:
        return _rail_only(groups, speed, latency)
    if not has_open_size(text):
        return builder(text, speed, latency)
    return _sized(text, groups, rails, speed, latency)


def _mixed(groups: tuple[ServerGroup, ...]) -> bool:
    """Do NICs of different speeds meet in one network?"""
    return len({group.nic_bandwidth for group in groups}) > 1


def _matching(found: Fabric, gpus: int) -> Fabric:
    if found.hosts != gpus:
        raise FabricError(
            f"{found.name} has {found.hosts} GPUs, not {gpus}: ask for {found.hosts} GPUs or for a fabric of {gpus}"
        )
    return found


def _sized(
    family: str, groups: tuple[ServerGroup, ...], rails: bool, bandwidth: float | None, latency: float | None
) -> Builder:
    """The smallest member of a family with a port for every NIC; a tree may have any number of pods."""
    servers, nics = sum(group.count for group in groups), max(group.nics_each for group in groups)
    name, _, ratio = family.partition(":")
    if name not in FAMILIES:
        return builder(family, hosts=2)  # refuses it with a hint
    sized = sizing_of(family if ratio or FAMILIES[name].tapered is None else f"{name}:1to1")
    if rails and name == "leaf-spine" and 1 < servers <= WIDEST_LEAF and nics > 1:
        return _leaf_per_rail(family, nics, servers, bandwidth, latency)
    ports = max(2, ports_of(groups, rails))
    if ports > MOST_HOSTS:
        raise FabricError(
            f"{servers} servers with {nics} NICs each need {ports} ports, more than the {MOST_HOSTS} of the largest "
            "network: ask for fewer GPUs"
        )
    members = (sized(size) for size in range(ports, min(8 * ports + 64, MOST_HOSTS) + 1))
    member = next((one for one in members if one is not None), None)
    if member is None:
        raise FabricError(f"{family} has no size of {ports} ports or a little more: write its numbers out")
    return builder(member.expression, bandwidth, latency)


def _leaf_per_rail(family: str, rails: int, servers: int, bandwidth: float | None, latency: float | None) -> Builder:
    """A leaf for every rail, with as many uplinks as the ratio of `leaf-spine:2to1` leaves."""
    ratio = ratio_of(family)
    spines = servers / ratio
    if spines.denominator != 1:
        step = ratio.numerator
        raise FabricError(
            f"{family} by rail: {servers} servers per leaf do not give a whole number of uplinks: use "
            f"{-(-servers // step) * step} servers, or fill leafs server by server with {family} and no rails"
        )
    return builder(LeafSpine(rails, int(spines), servers).expression, bandwidth, latency)


def _rail_only(groups: tuple[ServerGroup, ...], bandwidth: float | None, latency: float | None) -> Builder:
    """A switch for each NIC number of the servers."""
    given = {"bandwidth": bandwidth, "latency": latency}
    speeds = {key: value for key, value in given.items() if value is not None}
    return RailSwitches(max(group.nics_each for group in groups), sum(group.count for group in groups), **speeds)
