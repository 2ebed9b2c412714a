"""The plant of a cluster that is described as for every other command."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ropewalk.errors import ClusterError, Findings
from ropewalk.fabric import FatTree, LeafSpine, ServerFabric
from ropewalk.fabric.rails import RailSwitches
from ropewalk.hardware import Cluster
from ropewalk.tenancy.plant import Plant


def plant_of_cluster(cluster: Cluster) -> Plant:
    """The plant of a cluster whose servers stand whole below leafs of two or three tiers, or on rails.

    >>> from ropewalk.hardware import Given, read_cluster
    >>> plant_of_cluster(read_cluster("8x4", Given(network="leaf-spine:4x8x8"))).servers_per_leaf.tolist()
    [2, 2, 2, 2]
    >>> plant_of_cluster(read_cluster("8x4", Given(network="rails"))).leaf_of_gpu[:4].tolist()
    [0, 1, 2, 3]
    """
    findings, each = Findings(ClusterError, f"cluster {cluster.shape}"), cluster.equal
    made = cluster.fabric().builder
    shape = made.network if isinstance(made, ServerFabric) else None
    if cluster.failed:
        findings.add(f"{', '.join(cluster.failed)} failed: describe the whole cluster, and drain what does not work")
    if each.nics != each.gpus:
        findings.add(
            f"its servers have {each.nics} NICs for {each.gpus} GPUs, and jobs are placed where every GPU has its own: "
            f"describe servers with {each.gpus} NICs in a cluster file"
        )
    if isinstance(shape, LeafSpine | FatTree):
        _check_leafs(cluster, shape, findings)
    elif not isinstance(shape, RailSwitches) and not cluster.failed:
        findings.add(
            f"its network {cluster.network} is not a leaf-spine, fat-tree or rail network: name one such as "
            f"{_leaf_spine_for(cluster)}"
        )
    findings.raise_if_any()
    if isinstance(shape, RailSwitches) or cluster.rails:
        assert isinstance(shape, RailSwitches | LeafSpine)
        return _on_rails(cluster, shape)
    assert isinstance(shape, LeafSpine | FatTree)
    inside = each.nvlink_bandwidth
    if isinstance(shape, LeafSpine):
        whole = Plant.of_leaf_spine(shape, each.gpus, server_bandwidth=inside)
    else:
        whole = Plant.of_fat_tree(shape, each.gpus, server_bandwidth=inside)
    return replace(whole, server_leaf=whole.server_leaf[: each.count], server_names=whole.server_names[: each.count])


def _check_leafs(cluster: Cluster, shape: LeafSpine | FatTree, findings: Findings) -> None:
    each = cluster.equal
    ports = shape.hosts_per_leaf if isinstance(shape, LeafSpine) else shape.half
    if cluster.rails and isinstance(shape, FatTree):
        findings.add(f"its NICs are on rails of {shape.expression}, which has pods: name rails of two tiers, or none")
    elif cluster.rails and each.count % ports:
        findings.add(
            f"{each.count} servers are not whole units of {ports}, the ports of a leaf of {shape.expression}: name "
            f"rails such as rails:{each.gpus}x{each.count}x{each.count}"
        )
    elif not cluster.rails and ports % each.gpus:
        fitting = _leaf_spine_for(cluster, shape) if isinstance(shape, LeafSpine) else _fat_tree_for(cluster, shape)
        findings.add(
            f"{shape.expression} has {ports} ports on a leaf, which are not whole servers of {each.gpus} GPUs: name a "
            f"network such as {fitting}"
        )


def _leaf_spine_for(cluster: Cluster, shape: LeafSpine | None = None) -> str:
    """Two or more leafs with whole servers, as oversubscribed as a shape."""
    each = cluster.equal
    leafs = next(n for n in range(min(2, each.count), each.count + 1) if each.count % n == 0)
    room = cluster.gpus // leafs
    wanted = Fraction(1) if shape is None else Fraction(shape.spines * shape.cables, shape.hosts_per_leaf)
    return LeafSpine(leafs, max(1, int(room * wanted)), room).expression


def _fat_tree_for(cluster: Cluster, shape: FatTree) -> str:
    """The smallest pods whose leafs hold whole servers, as many as needed, as oversubscribed as a shape."""
    taper = shape.half // shape.uplinks
    step = math.lcm(cluster.equal.gpus, taper)
    half = next(half for half in itertools.count(step, step) if 2 * half**3 >= cluster.gpus)
    return FatTree(2 * half, max(2, -(-cluster.gpus // half**2)), half // taper).expression


def _on_rails(cluster: Cluster, shape: LeafSpine | RailSwitches) -> Plant:
    """NIC i of all servers goes to the leafs of rail i; the fabric numbers its leafs rail by rail."""
    each = cluster.equal
    ports = shape.hosts_per_leaf if isinstance(shape, LeafSpine) else shape.servers
    units = each.count // ports
    spines, cables = (shape.spines, shape.cables) if isinstance(shape, LeafSpine) else (0, 0)
    kind = "leaf" if isinstance(shape, LeafSpine) else "rail"
    return Plant(
        name=shape.expression if isinstance(shape, RailSwitches) else f"{shape.expression} by rail",
        gpus_per_server=each.gpus,
        server_leaf=np.repeat(np.arange(units, dtype=np.int32) * each.gpus, ports),
        cables=np.full((units * each.gpus, spines), cables, np.int32),
        nic_bandwidth=shape.bandwidth,
        link_bandwidth=shape.uplink if isinstance(shape, LeafSpine) else shape.bandwidth,
        server_bandwidth=each.nvlink_bandwidth,
        rails=each.gpus,
        leaf_names=tuple(f"{kind}{rail * units + unit}" for unit in range(units) for rail in range(each.gpus)),
    )
