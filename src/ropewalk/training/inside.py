"""How GPUs of a cluster exchange what they share, for work that runs beside it."""

from __future__ import annotations

from ropewalk.device.device import Device
from ropewalk.hardware import Cluster
from ropewalk.strategy.prices import Inside
from ropewalk.task.transport import Transport

CHANNELS = 16
"""Thread blocks of a collective: NCCL takes two for each of eight NICs, and as many on NVLink unless told otherwise."""


def inside_of(cluster: Cluster, transport: Transport | None, order: str, gpu: Device) -> Inside | None:
    """The smallest of its servers and the slowest of their links; None where it is not known what collectives cost.

    >>> from ropewalk.device.device import device
    >>> from ropewalk.hardware import read_cluster
    >>> inside_of(read_cluster("dgx-h100:2"), Transport(), "tp-cp-ep-dp-pp", device("h100")).gpus
    8
    """
    if transport is None:
        return None
    slowest = min(one.nvlink_bandwidth for one in cluster.servers)
    outside = min(one.nics * one.nic_bandwidth / one.gpus for one in cluster.servers)
    return Inside(
        min(one.gpus for one in cluster.servers), slowest * transport.efficiency_inside, transport.start_up_s,
        order.startswith("tp"), outside * transport.efficiency_across, CHANNELS / gpu.multiprocessors,
    )  # fmt: skip
