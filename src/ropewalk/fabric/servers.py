"""From a family, an expression or a file and a number of GPUs to the fabric that joins them.

>>> cluster("leaf-spine", 16, gpu="h100").name
'16 gpus, 8 a server, on leaf-spine:4x4x4'
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ropewalk.errors import FabricError
from ropewalk.fabric.cluster import Cluster, Network
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.expression import FAMILIES, MOST_HOSTS, builder, fabric, is_path
from ropewalk.fabric.fabric import Builder, Fabric
from ropewalk.fabric.interconnect import Interconnect, interconnect
from ropewalk.fabric.leaf_spine import LeafSpine

WIDEST_LEAF = 64
"""Ports of a leaf that go down, where half of the ports of a switch of radix 128 do."""


def cluster(
    network: str | Path,
    gpus: int,
    *,
    gpu: str,
    gpus_per_server: int | None = None,
    nics_per_server: int | None = None,
    nvlink_bandwidth: float | None = None,
    bandwidth: float | None = None,
    latency: float | None = None,
    rails: bool = False,
) -> Fabric:
    """The fabric whose hosts are `gpus` GPUs of this kind, in servers joined by this network.

    A family without numbers is sized to the NICs of all servers, with ports to spare where it has no such size. A
    complete expression or a file is the network outside the servers: its hosts are the NICs, or one NIC a server where
    it has as many hosts as there are servers. What already has servers (`dgx:2`, a file that names them) is taken as it
    is, and with `gpus_per_server=1` a network with as many hosts as GPUs is too: its hosts are the GPUs.

    What is not given is as in servers of that GPU (`interconnect`).
    """
    if gpus < 1:
        raise FabricError(f"a cluster of {gpus} GPUs does not exist: give 1 or more")
    text = str(network)
    read = fabric(text, bandwidth, latency) if is_path(text) else None
    if read is not None and read.server is not None:
        return _whole(read, gpus)
    if read is None and text.partition(":")[0] in WHOLE_SERVERS:
        return _whole(_dgx(text, gpus, nvlink_bandwidth, bandwidth, latency), gpus)

    if nvlink_bandwidth is None or (bandwidth is None and read is None):
        usual = interconnect(gpu)
    else:  # nothing is left to look up
        usual = Interconnect(8, nvlink_bandwidth, 8, bandwidth or 0.0, "given")
    per_server = min(usual.gpus_per_server, gpus) if gpus_per_server is None else gpus_per_server
    servers = -(-gpus // max(per_server, 1))
    nics = _usual_nics(usual, per_server) if nics_per_server is None else nics_per_server
    speed = usual.nic_bandwidth if bandwidth is None else bandwidth
    if read is not None:
        outside: Builder = Network(read)
    elif ":" in text:
        outside = builder(text, speed, latency)
    else:
        outside = _sized(text, servers, nics, rails, speed, latency)
    if gpus_per_server == 1 and outside.hosts == gpus:
        return outside.build()
    if nics_per_server is None and outside.hosts == servers < servers * nics:
        nics = 1
    inside = usual.nvlink_bandwidth if nvlink_bandwidth is None else nvlink_bandwidth
    return Cluster(outside, gpus, inside, per_server, nics, rails).build()


WHOLE_SERVERS = ("dgx", "dgx-a100", "dgx-h100")
"""Families whose fabrics hold the servers themselves."""


def _dgx(
    text: str, gpus: int, nvlink_bandwidth: float | None, bandwidth: float | None, latency: float | None
) -> Fabric:
    made = builder(text, bandwidth, latency, hosts=None if ":" in text else gpus)
    if isinstance(made, Dgx) and nvlink_bandwidth is not None:
        made = replace(made, nvlink_bandwidth=nvlink_bandwidth)
    return made.build()


def _whole(found: Fabric, gpus: int) -> Fabric:
    if found.hosts != gpus:
        raise FabricError(
            f"{found.name} has {found.hosts} GPUs, not {gpus}: ask for {found.hosts} GPUs or for a fabric of {gpus}"
        )
    return found


def _usual_nics(usual: Interconnect, per_server: int) -> int:
    """As many GPUs to a NIC as usual, in servers of any size."""
    shared = max(1, usual.gpus_per_server // usual.nics_per_server)
    return per_server // shared if per_server % shared == 0 else per_server


def _sized(family: str, servers: int, nics: int, rails: bool, bandwidth: float, latency: float | None) -> Builder:
    """The smallest member of a family with a port for every NIC."""
    if rails and family == "leaf-spine" and 1 < servers <= WIDEST_LEAF and nics > 1:
        return LeafSpine(nics, servers, servers, bandwidth=bandwidth, latency=latency or 0.0)
    ports = max(2, servers * nics)
    if family not in FAMILIES:
        return builder(family, hosts=2)  # refuses it with a hint
    if ports > MOST_HOSTS:
        raise FabricError(
            f"{servers} servers with {nics} NICs each need {ports} ports, more than the {MOST_HOSTS} of the largest "
            "network: ask for fewer GPUs"
        )
    sizes = (size for size in range(ports, min(8 * ports + 64, MOST_HOSTS) + 1) if FAMILIES[family].sized(size))
    size = next(sizes, None)
    if size is None:
        raise FabricError(f"{family} has no size of {ports} ports or a little more: write its numbers out")
    return builder(family, bandwidth, latency, hosts=size)
