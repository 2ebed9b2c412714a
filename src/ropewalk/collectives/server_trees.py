"""All-reduce over servers in trees, as NCCL builds them: a chain inside every server, binary trees between servers.

The GPU at the head of a chain speaks for its server. There are as many pairs of trees as a server has ranks, each with
another GPU at the head, so that every NIC carries its part; the two trees of a pair are those of the double binary
tree (`double_tree.py`), over servers in place of ranks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.double_tree import in_order_tree, up_and_down
from ropewalk.collectives.lanes import side_by_side
from ropewalk.collectives.over_servers import Servers
from ropewalk.collectives.program import Program, everyone
from ropewalk.collectives.scatter_gather import at_least_two


def server_trees(servers: Servers, segments: int = 1) -> Program:
    """Reduce up all trees and broadcast down again, the buffer of each cut into segments that follow each other.

    >>> server_trees((2, 2)).lanes
    4
    """
    ranks = sum(servers)
    at_least_two(ranks, "a tree over servers")
    between = in_order_tree(len(servers))
    shifted = np.roll(np.where(between < 0, -1, (between + 1) % len(servers)), 1)
    lanes = [
        up_and_down(_parents(servers, head, tree), segments)
        for head in range(min(servers))
        for tree in (between, shifted)
    ]
    rounds = tuple(side_by_side(lanes, segments))
    name = f"trees over {len(servers)} servers"
    return Program(name, ranks, segments * len(lanes), rounds, everyone(ranks), everyone(ranks))


def _parents(servers: Servers, head: int, between: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parent of every rank, -1 for the root: its neighbour in the chain, or the head of the server above."""
    first = np.cumsum(servers) - servers
    parent = np.empty(sum(servers), np.int64)
    for server, size in enumerate(servers):
        chain = first[server] + (head + np.arange(size)) % size
        parent[chain[1:]] = chain[:-1]
        above = between[server]
        parent[chain[0]] = -1 if above < 0 else first[above] + head % servers[above]
    return parent
