"""A cluster whose GPUs keep to a power limit."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.device.held import held_to
from ropewalk.hardware.cluster import Cluster


def held(cluster: Cluster, power: str | None = None) -> Cluster:
    """The same servers, their GPUs held to a power limit: that of their data sheet unless given; `none` is full clock.

    >>> from ropewalk.hardware import read_cluster
    >>> held(read_cluster("dgx-h100:2")).said
    '2x8 h100 at 700 W, 8 NICs of 400 Gbps per server, by rail on leaf-spine'
    """
    servers = tuple(replace(group, device=held_to(group.device, power)) for group in cluster.servers)
    return cluster if servers == cluster.servers else replace(cluster, servers=servers)
