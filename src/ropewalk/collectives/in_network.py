"""All-reduces that switches add up: one tree of switches, up which segments are reduced and down which they are copied.

SHARP and NVLS work so: every host sends its buffer once and receives the sum once, whatever the number of hosts. A
switch takes part as a rank without input, on a host of its own behind the switch whose link is never the bottleneck; so
the program is proved, routed and simulated as any other, and what arrives at a switch is added up by its own mixer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Program, only
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.segments import pipelined
from ropewalk.errors import ProgramError
from ropewalk.fabric import Fabric
from ropewalk.routing import shortest

BEHIND = 1e3
"""The link between a switch and its adder carries so many times what all links of the fabric together do."""
LANES = 4
"""Parts of the buffer that climb the tree independently: while a switch adds one, others are on the wire."""


@dataclass(frozen=True)
class SwitchTree:
    """A tree whose leaves are hosts and whose inner nodes are switches: the parent of every node but the root."""

    root: int
    parent: dict[int, int]

    def depth(self, node: int) -> int:
        """Links to the root."""
        return 0 if node == self.root else 1 + self.depth(self.parent[node])

    def heights(self) -> dict[int, int]:
        """Links to the farthest leaf below each node."""
        found = dict.fromkeys([self.root, *self.parent], 0)
        for node in sorted(self.parent, key=self.depth, reverse=True):
            found[self.parent[node]] = max(found[self.parent[node]], found[node] + 1)
        return found

    @property
    def rounds(self) -> int:
        """Rounds that one segment takes, up and down."""
        return 2 * self.heights()[self.root]


def switch_tree(fabric: Fabric, members: NDArray[np.int64]) -> SwitchTree:
    """The lowest tree through switches alone that reaches these hosts, from a switch of the highest level."""
    switches = np.arange(fabric.hosts, fabric.nodes)
    top = switches[fabric.level[switches] == fabric.level[switches].max(initial=0)]
    found = [tree for root in top.tolist() if (tree := _grown(fabric, root, members.tolist())) is not None]
    if not found:
        raise ProgramError(
            f"no tree of switches of {fabric.name} reaches all {len(members)} ranks: choose a group below one switch, "
            "or leave in-network reduction out"
        )
    return min(found, key=lambda tree: tree.rounds)


def _grown(fabric: Fabric, root: int, members: list[int]) -> SwitchTree | None:
    start, links = fabric.outgoing()
    above, queue = {root: root}, deque([root])
    while queue:
        node = queue.popleft()
        for link in links[start[node] : start[node + 1]].tolist():
            other = int(fabric.link_dst[link])
            if other not in above:
                above[other] = node
                if other >= fabric.hosts:  # hosts do not pass on what is meant for others
                    queue.append(other)
    parent: dict[int, int] = {}
    for node in members:
        while node != root and node not in parent:
            if node not in above:
                return None
            parent[node] = above[node]
            node = above[node]
    return SwitchTree(root, parent)


def in_network_all_reduce(fabric: Fabric, members: NDArray[np.int64], segments: int = 1) -> Schedule:
    """An all-reduce over one tree of switches; ranks after the members are switches.

    >>> from ropewalk.fabric import IdealSwitch
    >>> schedule = in_network_all_reduce(IdealSwitch(4).build(), np.arange(4), segments=3)
    >>> schedule.program.check()
    >>> schedule.program.ranks, len(schedule.program.rounds)
    (5, 4)
    """
    tree = switch_tree(fabric, members)
    heights = tree.heights()
    inner = sorted(set(tree.parent.values()))
    nodes = np.concatenate([members, inner]).astype(np.int64)
    rank = {int(node): number for number, node in enumerate(nodes)}
    up = [(rank[child], rank[parent], heights[child], True) for child, parent in tree.parent.items()]
    down = [
        (rank[parent], rank[child], heights[tree.root] + tree.depth(parent), False)
        for child, parent in tree.parent.items()
    ]
    src, dst, first, adds = (np.tile(column, LANES) for column in zip(*up, *down, strict=True))
    lane = np.repeat(np.arange(LANES), len(up) + len(down))
    inputs = only(len(nodes), np.arange(len(members)))
    program = Program(
        f"in-network all-reduce through {fabric.node_names[tree.root]}", len(nodes), LANES * segments,
        tuple(pipelined(src, dst, first, adds, segments, lane=lane, first_chunk=lane * segments)), inputs, inputs,
    )  # fmt: skip
    hosts = nodes.astype(np.int32)  # the adder of a switch has the number that the switch had
    adding = with_adders(fabric)
    return Schedule("in-network", program, hosts, shortest(adding, hosts[src], hosts[dst]))


def with_adders(fabric: Fabric) -> Fabric:
    """The fabric with a host behind every switch, which adds up and copies for it.

    >>> from ropewalk.fabric import LeafSpine
    >>> with_adders(LeafSpine(2, 2, 4).build()).hosts
    12
    """
    hosts, switches = fabric.hosts, fabric.switches
    moved = np.arange(fabric.nodes, dtype=np.int32) + np.where(np.arange(fabric.nodes) < hosts, 0, switches)
    adder = np.arange(hosts, hosts + switches)
    both = np.column_stack([adder, moved[hosts:]]), np.column_stack([moved[hosts:], adder])
    names = fabric.node_names
    return replace(
        fabric,
        name=f"{fabric.name} with reducing switches",
        node_names=(*names[:hosts], *(f"{name} (adder)" for name in names[hosts:]), *names[hosts:]),
        hosts=hosts + switches,
        level=np.concatenate([fabric.level[:hosts], np.zeros(switches, np.int16), fabric.level[hosts:]]),
        link_src=np.concatenate([moved[fabric.link_src], both[0].ravel()]).astype(np.int32),
        link_dst=np.concatenate([moved[fabric.link_dst], both[1].ravel()]).astype(np.int32),
        bandwidth=np.concatenate([fabric.bandwidth, np.full(2 * switches, BEHIND * float(fabric.bandwidth.sum()))]),
        latency=np.concatenate([fabric.latency, np.zeros(2 * switches)]),
        cables=np.concatenate([fabric.cables, np.ones(2 * switches, np.int32)]),
        builder=None,
        server=None,
    )
