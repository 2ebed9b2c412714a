"""Settings that make a whole cluster slow: each is the cluster, or the library, as it would be with it.

A setting is priced by the same simulation as a healthy cluster, so that it predicts what every measurement shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ropewalk.choices import Choice, Choices
from ropewalk.collectives.nccl import Algorithm, Generation, Library, library_for
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster

Changed: TypeAlias = "tuple[Cluster, Library]"
Change: TypeAlias = "Callable[[Cluster, Library], Changed | None]"
"""The cluster with the setting; None where it makes no difference."""

SOCKETS = 5e9
"""Bytes/s of a server that talks TCP over one interface, about what NCCL's sockets reach."""
STAGED = 0.5
"""Of a NIC's bandwidth that is left where bytes pass through the memory of the host."""
PCIE = {Generation.VOLTA: 15.75e9, Generation.AMPERE: 31.5e9}
NEWEST_PCIE = 63e9


def _with_nics(nics: Callable[[int], int]) -> Change:
    def change(cluster: Cluster, library: Library) -> Changed | None:
        if len(cluster.server_sizes) < 2 or all(nics(group.nics) >= group.nics for group in cluster.servers):
            return None
        groups = tuple(replace(group, nics=nics(group.nics)) for group in cluster.servers)
        return _on(replace(cluster, servers=groups), library)

    return change


def _on(cluster: Cluster, library: Library) -> Changed:
    """The library as it is set up, on changed servers."""
    found = library_for(cluster)
    rates = replace(found.rates, nic=library.rates.nic)
    return cluster, replace(found, rates=rates, algorithms=library.algorithms, protocols=library.protocols)


def _across(share: Callable[[Cluster, float], float]) -> Change:
    def change(cluster: Cluster, library: Library) -> Changed | None:
        if len(cluster.server_sizes) < 2:
            return None
        now = library.rates.nic
        then = min(now, share(cluster, now))
        return cluster, replace(library, rates=replace(library.rates, nic=then))

    return change


def _without_nvlink(cluster: Cluster, library: Library) -> Changed | None:
    # Through the memory of the host every byte crosses PCI Express twice.
    speed = PCIE.get(library.generation, NEWEST_PCIE) / 2
    if cluster.servers[0].gpus < 2 or cluster.servers[0].nvlink_bandwidth <= speed:
        return None
    groups = tuple(replace(group, nvlink_bandwidth=speed) for group in cluster.servers)
    return _on(replace(cluster, servers=groups), library)


def _sockets(cluster: Cluster, now: float) -> float:
    return SOCKETS / (cluster.servers[0].nics * cluster.servers[0].nic_bandwidth)


def _ring_only(cluster: Cluster, library: Library) -> Changed | None:
    return cluster, replace(library, algorithms=frozenset({Algorithm.RING, Algorithm.POINT_TO_POINT}))


SETTINGS: Choices[Choice[Change]] = Choices(
    "setting",
    (
        Choice("ring-only", _ring_only, "only rings run: NCCL_ALGO=Ring, or NVLS is off or cannot be "
               "set up (NCCL_NVLS_ENABLE, fabric manager)"),
        Choice("one-nic", _with_nics(lambda nics: 1), "one NIC per server is used: NCCL_IB_HCA names one, or the "
               "others are down"),
        Choice("half-the-nics", _with_nics(lambda nics: nics // 2), "half of the NICs are used: NCCL_IB_HCA names "
               "half of them, or PCIe hides them from their GPUs"),
        Choice("no-gpudirect", _across(lambda cluster, now: now * STAGED), "data is staged through host memory: "
            "GPUDirect "
               "RDMA is off (nvidia-peermem, NCCL_NET_GDR_LEVEL, ACS or IOMMU)"),
        Choice("sockets", _across(_sockets), "TCP instead of RDMA: NCCL_IB_DISABLE, or no plugin for the network "
               "(NET/Socket in NCCL's log)"),
        Choice("no-nvlink", _without_nvlink, "GPUs of a server communicate through host memory: NVLink or peer "
               "access is off (NCCL_P2P_DISABLE, fabric manager)"),
    ),
    error=InputError,
)  # fmt: skip
"""By name."""
