"""From what was said of a cluster to the whole of it: what is not said is as in servers of that GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from ropewalk.device.device import DEVICES, unlimited
from ropewalk.device.pricer import TABLE_SUFFIXES
from ropewalk.device.table import read_table
from ropewalk.errors import FabricError, Findings, InputError
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.expression import builder, fabric, has_open_size, is_path, sizing_of
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric
from ropewalk.fabric.in_server import CubeMesh, PcieTree
from ropewalk.fabric.interconnect import INTERCONNECTS, Interconnect, gpu_in, interconnect
from ropewalk.fabric.rails import RAIL_ONLY
from ropewalk.fabric.servers import WHOLE_SERVERS
from ropewalk.hardware.cluster import DEFAULT_DEVICE, DEFAULT_NETWORK, MOST_GPUS, Cluster, Ports, Servers, problems
from ropewalk.hardware.draft import ClusterDraft, GroupDraft

RAILS = "rails"
"""What people write for a leaf-spine by rail."""


def gpu_of(device: str) -> str:
    """The name of the GPU; a table of measurements tells it by its title."""
    if not device.lower().endswith(TABLE_SUFFIXES):
        return unlimited(device)
    measured = read_table(Path(device)).device
    return gpu_in(measured.title) or measured.name


@dataclass(frozen=True)
class Outside:
    """What a network brings with it that a description of servers has to agree with."""

    hosts: int | None = None
    """Of a complete network between servers."""
    nic_bandwidth: float | None = None
    """Of its ports, where it has its own speeds."""
    nvlink_bandwidth: float | None = None
    sizes: tuple[int, ...] = ()
    """GPUs of every server, where it holds the servers themselves."""


def outside_of(network: str | Ports | None, gpus: int | None = None) -> Outside:
    """What is known of a network by its name alone."""
    text = DEFAULT_NETWORK if network is None else network
    if isinstance(text, Ports):
        return Outside()
    if is_path(text):
        return _of_fabric(fabric(text))
    if text.partition(":")[0] in WHOLE_SERVERS:
        made = builder(text, hosts=gpus if has_open_size(text) else None)
        if isinstance(made, (CubeMesh, PcieTree)):
            return Outside(nvlink_bandwidth=made.inside_bandwidth, sizes=(made.hosts,))
        assert isinstance(made, Dgx)
        return Outside(None, made.bandwidth, made.nvlink_bandwidth, (made.gpus,) * made.servers)
    if text and text != RAIL_ONLY and has_open_size(text):
        sizing_of(text)  # refuses a family that does not exist
    elif text != RAIL_ONLY and text:
        return Outside(builder(text).hosts)
    return Outside()


def _of_fabric(read: Fabric) -> Outside:
    if read.server is not None:
        return Outside(sizes=tuple(np.bincount(read.server).tolist()))
    return Outside(read.hosts, float(read.host_bandwidth().min()))


def completed(draft: ClusterDraft, findings: Findings) -> Cluster:
    """The cluster, or all findings at once."""
    draft = _with_rails(draft, findings)
    network = DEFAULT_NETWORK if draft.network is None else draft.network
    total = sum(max(0, one.count) * max(0, one.gpus) for one in draft.groups)
    try:
        outside = outside_of(network, total)
    except InputError as problem:
        findings.add(f"network: {problem}")
        outside = Outside()
    _fits_servers(draft, network, outside, findings)
    servers = tuple(_group(group, draft, network, outside, findings) for group in draft.groups)
    if servers or not findings:  # servers that could not be read are missing for a reason that was found
        for message in problems(servers, network, draft.latency_s, draft.failed):
            findings.add(message)
    findings.raise_if_any()
    return Cluster(servers, network, draft.latency_s, bool(draft.rails), draft.failed)


def _with_rails(draft: ClusterDraft, findings: Findings) -> ClusterDraft:
    """`rails` and `rails:2to1` are a leaf-spine by rail."""
    name, colon, ratio = draft.network.partition(":") if isinstance(draft.network, str) else ("", "", "")
    if name != RAILS:
        return draft
    if draft.rails is False:
        findings.add(f"network: {draft.network} is a rail network, but rails are off: leave one of the two out")
    return replace(draft, network=f"leaf-spine{colon}{ratio}", rails=True)


def _fits_servers(draft: ClusterDraft, network: str | Ports, outside: Outside, findings: Findings) -> None:
    """Find what the network says otherwise than the description of the servers."""
    sizes = tuple(one.gpus for one in draft.groups for _ in range(min(one.count, MOST_GPUS)))
    if outside.sizes and sizes != outside.sizes:
        whole = f"{len(outside.sizes)} servers of {', '.join(map(str, dict.fromkeys(outside.sizes)))} GPUs"
        findings.add(
            f"{network} holds {whole}, but {_in_words(draft)} are described: describe the same servers, or leave them "
            "out"
        )
    if not isinstance(network, str) or not is_path(network):
        return
    if draft.latency_s is not None:
        findings.add(f"{network} has its own latencies, but a latency is given too: leave it out")
    for group in draft.groups:
        own = outside.nic_bandwidth
        if own is not None and group.nic_bandwidth is not None and group.nic_bandwidth != own:
            findings.add(
                f"the hosts of {network} send {own:g} bytes/s, but NICs of {group.nic_bandwidth:g} bytes/s are "
                "described: leave the NIC bandwidth out, as the file has it"
            )


def _in_words(draft: ClusterDraft) -> str:
    return " and ".join(f"{one.count} of {one.gpus}" for one in draft.groups)


def _group(
    group: GroupDraft, draft: ClusterDraft, network: str | Ports, outside: Outside, findings: Findings
) -> Servers:
    device = DEFAULT_DEVICE if group.device is None else group.device
    nvlink = outside.nvlink_bandwidth if group.nvlink_bandwidth is None else group.nvlink_bandwidth
    nic = outside.nic_bandwidth if group.nic_bandwidth is None else group.nic_bandwidth
    usual = _usual(device, nvlink, nic, sum(one.count * one.gpus for one in draft.groups) == 1, findings)
    count = sum(one.count for one in draft.groups)
    nics = group.nics
    if nics is None and isinstance(network, Ports):
        nics = network.degree
    elif nics is None and outside.hosts == count < count * usual_nics(usual, group.gpus):
        nics = 1
    return Servers(
        group.count,
        group.gpus,
        device,
        usual.nvlink_bandwidth if nvlink is None else nvlink,
        usual_nics(usual, group.gpus) if nics is None else nics,
        usual.nic_bandwidth if nic is None else nic,
    )


def _usual(device: str, nvlink: float | None, nic: float | None, alone: bool, findings: Findings) -> Interconnect:
    """How servers of this GPU are built; where nothing is left to look up, and for a GPU alone, any GPU will do."""
    stand_in = Interconnect(8, nvlink or DEFAULT_BANDWIDTH, 8, nic or DEFAULT_BANDWIDTH, "given")
    try:
        gpu = gpu_of(device)
        if not device.lower().endswith(TABLE_SUFFIXES) and not {device.lower(), gpu} & {*DEVICES, *INTERCONNECTS}:
            _once(findings, DEVICES.unknown(device))
            return stand_in
        if alone or (nvlink is not None and nic is not None):
            return stand_in
        return interconnect(gpu)
    except InputError as problem:
        _once(findings, str(problem))
        return stand_in


def _once(findings: Findings, message: str) -> None:
    if message not in findings.messages:
        findings.add(message)


def usual_nics(usual: Interconnect, gpus: int) -> int:
    """As many GPUs to a NIC as usual, in servers of any size."""
    shared = max(1, usual.gpus_per_server // usual.nics_per_server)
    return gpus // shared if gpus > 0 and gpus % shared == 0 else max(gpus, 1)


def usual_size(device: str) -> int:
    """GPUs of a server of this GPU; 8 where nobody knows."""
    try:
        return interconnect(gpu_of(device)).gpus_per_server
    except FabricError:
        return 8


def groups_of(sizes: tuple[int, ...], device: str | None = None) -> tuple[GroupDraft, ...]:
    """Servers with these numbers of GPUs, equal neighbours together.

    >>> [(group.count, group.gpus) for group in groups_of((8, 8, 4))]
    [(2, 8), (1, 4)]
    """
    return tuple(GroupDraft(len(list(same)), size, device) for size, same in groupby(sizes))
