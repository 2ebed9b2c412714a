"""How GPUs of a cluster exchange what they share, for work that runs beside it."""

from __future__ import annotations

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import chosen
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.device.device import Device
from ropewalk.hardware import Cluster
from ropewalk.strategy.prices import Inside
from ropewalk.training.network import NetworkUse
from ropewalk.workload.zoo.stacks import EAGER, Stack

CHANNELS = 16
"""Thread blocks of a collective: NCCL takes two for each of eight NICs, and as many on NVLink unless told otherwise."""


def inside_of(cluster: Cluster, use: NetworkUse, order: str, gpu: Device, stack: Stack = EAGER) -> Inside | None:
    """The smallest of its servers and the slowest of their links; None where it is not known what collectives cost.

    What is left of overlapped collectives costs what the stack calls, whatever else runs them.

    >>> from ropewalk.device.device import device
    >>> from ropewalk.hardware import read_cluster
    >>> cluster = read_cluster("dgx-h100:2")
    >>> inside_of(cluster, NetworkUse().settled("h100", cluster), "tp-cp-ep-dp-pp", device("h100")).gpus
    8
    """
    transport = use.transport
    if transport is None:
        return None
    gpus, slowest = min(one.gpus for one in cluster.servers), min(one.nvlink_bandwidth for one in cluster.servers)
    outside = min(one.nics * one.nic_bandwidth / one.gpus for one in cluster.servers)
    start_up, inside, across = transport.start_up_s, transport.efficiency_inside, transport.efficiency_across
    if use.library is not None and COLLECTIVES[stack.collectives].chooses:
        together = (max(2, gpus),)
        least = chosen(Act.ALL_GATHER, use.library.communicator(together), 1.0)
        start_up = use.library.run(Act.ALL_GATHER, together, least).latency_s
        inside, across = use.library.rates.rings, use.library.rates.nic
    taken = CHANNELS / gpu.multiprocessors if stack.counts_channels else 0.0
    return Inside(gpus, slowest * inside, start_up, order.startswith("tp"), outside * across, taken)
