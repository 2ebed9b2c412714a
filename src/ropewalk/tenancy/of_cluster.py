"""The plant of a cluster that is described as for every other command."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.errors import ClusterError, Findings
from ropewalk.fabric import LeafSpine, ServerFabric
from ropewalk.hardware import Cluster
from ropewalk.tenancy.plant import Plant


def plant_of_cluster(cluster: Cluster) -> Plant:
    """The plant of a cluster whose servers stand whole below the leafs of a leaf-spine, a NIC for each GPU.

    >>> from ropewalk.hardware import Given, read_cluster
    >>> plant_of_cluster(read_cluster("8x4", Given(network="leaf-spine:4x8x8"))).servers_per_leaf.tolist()
    [2, 2, 2, 2]
    """
    findings, each = Findings(ClusterError, f"cluster {cluster.shape}"), cluster.equal
    made = cluster.fabric().builder
    shape = made.network if isinstance(made, ServerFabric) else None
    if cluster.failed:
        findings.add(f"{', '.join(cluster.failed)} failed: describe the whole cluster, and drain what does not work")
    if cluster.rails:
        findings.add("its NICs are on rails, but jobs are placed on servers below one leaf: leave rails out")
    if each.nics != each.gpus:
        findings.add(f"its servers have {each.nics} NICs for {each.gpus} GPUs: give every GPU a NIC")
    if isinstance(shape, LeafSpine) and shape.hosts_per_leaf % each.gpus:
        leafs = next(n for n in range(min(2, each.count), each.count + 1) if each.count % n == 0)
        ports = cluster.gpus // leafs
        findings.add(
            f"{shape.expression} has {shape.hosts_per_leaf} ports on a leaf, which are not whole servers of "
            f"{each.gpus} GPUs: name a network such as leaf-spine:{leafs}x{ports}x{ports}"
        )
    elif not isinstance(shape, LeafSpine) and not cluster.failed:
        findings.add(f"its network {cluster.network} is no leaf-spine: name one such as leaf-spine:64x32x32")
    findings.raise_if_any()
    assert isinstance(shape, LeafSpine)
    whole = Plant.of_leaf_spine(shape, each.gpus, server_bandwidth=each.nvlink_bandwidth)
    return replace(whole, server_leaf=whole.server_leaf[: each.count], server_names=whole.server_names[: each.count])
