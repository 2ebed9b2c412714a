"""Per-flow ECMP: at every node the hash of the flow picks one of the next hops on shortest paths.

A flow stays on one path, so two flows may collide on a link while another is idle. Parallel links are separate next
hops.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.routing.routes import Router, Routes, unique_pairs
from ropewalk.routing.shortest import HopChoice, walk_shortest

ROCE_PORT = 4791
"""UDP destination port of RDMA over converged Ethernet."""

_FIRST_ADDRESS = 0x0B000001
_FIRST_SOURCE_PORT = 10000


def ecmp(seed: int = 0, polarised: bool = False, port: int = ROCE_PORT) -> Router:
    """Hash every flow (src, dst, port) with a seed of its own at every switch.

    `polarised` gives all switches the same seed. Then every flow that reaches an aggregation switch has already been
    sorted by the hash that picks its next hop, and most upper links stay idle.

    >>> from ropewalk.fabric import FatTree
    >>> ecmp(seed=1)(FatTree(4).build(), np.array([0]), np.array([15])).hops
    array([6])
    """

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        words = np.column_stack([pair_src, pair_dst, np.full(len(pair_src), port)]).astype(np.uint32)
        node = np.zeros(fabric.nodes, np.uint64) if polarised else np.arange(1, fabric.nodes + 1, dtype=np.uint64)
        choice = HopChoice(*fabric.outgoing(), words, _mix(seed, node))
        return walk_shortest(fabric, pair_src, pair_dst, choice)

    return route


def murmur(dport: int = 100) -> Router:
    """ECMP exactly as the RDMA fork of ns-3 of the HPCC authors does it, to compare with its packet-level runs.

    MurmurHash3 over source address, destination address and both UDP ports, seeded with the number of the node; next
    hops listed from the last created node to the first. Flows are the first of their pair (source port 10000). Another
    destination port is another realisation of the hash.
    """

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        ports = np.full(len(pair_src), _FIRST_SOURCE_PORT | dport << 16)
        words = np.column_stack([_address(pair_src), _address(pair_dst), ports]).astype(np.uint32)
        out_start, _ = fabric.outgoing()
        latest_first = np.lexsort((np.arange(fabric.links), -fabric.link_dst, fabric.link_src)).astype(np.int32)
        choice = HopChoice(out_start, latest_first, words, np.arange(fabric.nodes, dtype=np.uint32))
        return walk_shortest(fabric, pair_src, pair_dst, choice)

    return route


def _address(node: NDArray[np.int32]) -> NDArray[np.int64]:
    """The IP address of a node: 11.x.y.1 with the node number in the middle bytes."""
    number = node.astype(np.int64)
    return _FIRST_ADDRESS + (number // 256 << 16) + (number % 256 << 8)


def _mix(seed: int, node: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """32 well-mixed bits of (seed, node): two rounds of SplitMix64 (Steele, Lea and Flood, 2014)."""
    state = node
    for add in (np.uint64(seed & (2**64 - 1)), np.uint64(0)):
        state = state * np.uint64(0x9E3779B97F4A7C15) + add
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(32)).astype(np.uint32)
