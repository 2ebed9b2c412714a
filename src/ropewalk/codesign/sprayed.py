"""Trees that spray packets over all their paths, as trees with one path for each pair.

Switches of a pod that share everything alike can be one switch, and their cables one cable of their speeds together: a
transfer loads all of them equally, so the first to be full is never one alone. Rates, latencies and times stay the
same, and a pair has one path where it had as many as there are cores.
"""

from __future__ import annotations

import numpy as np

from ropewalk.fabric import Fabric, FatTree, LeafSpine
from ropewalk.fabric.fabric import FabricDraft
from ropewalk.fabric.parameters import numbered


def sprayed_fat_tree(tree: FatTree) -> Fabric:
    """The tree with one aggregation switch in each pod and one core.

    >>> sprayed_fat_tree(FatTree(8)).switches, FatTree(8).build().switches
    (41, 80)
    """
    m, pods, uplinks = tree.half, tree.pod_count, tree.uplinks
    draft = FabricDraft(f"{tree.expression} sprayed")
    hosts = draft.add_hosts(numbered("h", tree.hosts))
    edges = draft.add_switches(numbered("edge", pods * m), level=1)
    aggregations = draft.add_switches(numbered("agg", pods), level=2)
    core = draft.add_switches(["core"], level=3)
    draft.add_links(hosts, np.repeat(edges, m), tree.bandwidth, tree.latency)
    draft.add_links(edges, np.repeat(aggregations, m), uplinks * tree.bandwidth, tree.latency, uplinks)
    draft.add_links(aggregations, core, uplinks * m * tree.bandwidth, tree.latency, uplinks * m)
    return draft.freeze()


def sprayed_leaf_spine(tree: LeafSpine) -> Fabric:
    """The tree with one spine.

    >>> sprayed_leaf_spine(LeafSpine(4, 8, 16)).switches
    5
    """
    together = tree.spines * tree.cables * tree.uplink
    return LeafSpine(
        tree.leafs, 1, tree.hosts_per_leaf, uplink_bandwidth=together, bandwidth=tree.bandwidth, latency=tree.latency
    ).build()
