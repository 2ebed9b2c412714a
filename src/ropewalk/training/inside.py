"""How GPUs inside the servers of a cluster exchange what they share, for work that overlaps with it."""

from __future__ import annotations

from ropewalk.hardware import Cluster
from ropewalk.strategy.prices import Inside
from ropewalk.task.transport import Transport


def inside_of(cluster: Cluster, transport: Transport | None, order: str) -> Inside | None:
    """The smallest of its servers and the slowest of their links.

    None where tensor ranks are not next to each other, or where it is not known what collectives cost.

    >>> from ropewalk.hardware import read_cluster
    >>> inside_of(read_cluster("dgx-h100:2"), Transport(), "tp-cp-ep-dp-pp").gpus
    8
    """
    if transport is None or not order.startswith("tp"):
        return None
    slowest = min(one.nvlink_bandwidth for one in cluster.servers)
    return Inside(min(one.gpus for one in cluster.servers), slowest * transport.efficiency_inside, transport.start_up_s)
