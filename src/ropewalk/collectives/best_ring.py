"""The rings a good library would take on a fabric, as schedules: what everything else has to be compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ropewalk.collectives.lanes import side_by_side
from ropewalk.collectives.latency.cost import schedule_cost
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.program import Program, everyone, only
from ropewalk.collectives.ring import rings
from ropewalk.collectives.ring_orders import Rings, best_rings_of
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.segments import pipelined
from ropewalk.collectives.spread_routes import spread_routes
from ropewalk.errors import ProgramError

CHAIN_SEGMENTS = 64
"""Segments that follow each other along a chain: a broadcast of N ranks takes N - 2 + 64 rounds."""


def best_ring(network: Network, collective: str, seed: int = 0, *, root: int | None = None) -> Schedule:
    """A collective over the best rings that were found, never slower than over one ring in the order of the ranks.

    A broadcast or reduce runs along the rings as pipelined chains from (or to) the root, a host of the group.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> schedule = best_ring(network_of(Torus((3, 3), bandwidth=1e9).build()), "allgather")
    >>> schedule.program.check()
    >>> schedule.promise
    Fraction(4500000000, 1)
    """
    return ring_schedule(network, best_rings_of(network, seed), collective, "best-ring", root=root)


def ring_schedule(network: Network, found: Rings, collective: str, name: str, *, root: int | None = None) -> Schedule:
    """A collective over given rings."""
    ways = {
        "allgather": lambda: rings(list(found.orders), found.both_ways).all_gather("ring all-gather"),
        "reducescatter": lambda: rings(list(found.orders), found.both_ways).reduce_scatter("ring reduce-scatter"),
        "allreduce": lambda: rings(list(found.orders), found.both_ways).all_reduce("ring all-reduce"),
        "broadcast": lambda: _chains(network, found, root, reduces=False),
        "reduce": lambda: _chains(network, found, root, reduces=True),
    }
    if collective not in ways:
        raise ProgramError(f"rings do not support {collective!r}: choose {', '.join(ways)}")
    if not network.equal_shards:
        raise ProgramError("rings support equal shards only: leave the shards out, or use --method forest")
    return on_members(name, ways[collective](), network)


def on_members(name: str, program: Program, network: Network) -> Schedule:
    """A program of which rank i runs on member i, over routes that spread its bytes; with its promise."""
    hosts = network.members.astype(np.int32)
    src, dst = (np.concatenate([getattr(pattern, end) for pattern in program.patterns]) for end in ("src", "dst"))
    schedule = Schedule(name, program, hosts, spread_routes(network.fabric, hosts[src], hosts[dst]))
    return replace(schedule, promise=1 / schedule_cost(schedule, network).seconds_per_byte)


def _chains(network: Network, found: Rings, root: int | None, reduces: bool) -> Program:
    """Every ring cut open before the root: a chain in which segments follow each other."""
    first = root_rank(network, root)
    ranks = found.orders.shape[1]
    lines = []
    for order in found.orders:
        line = np.roll(order, -int(np.flatnonzero(order == first)[0]))
        lines.append(line)
        if found.both_ways:
            lines.append(np.roll(line[::-1], 1))
    lanes = []
    for line in lines:
        way = line[::-1] if reduces else line
        adds = np.full(ranks - 1, reduces)
        lanes.append(pipelined(way[:-1], way[1:], np.arange(ranks - 1), adds, CHAIN_SEGMENTS))
    everybody, one = everyone(ranks), only(ranks, first)
    return Program(
        f"chain {'reduce' if reduces else 'broadcast'} in {CHAIN_SEGMENTS} segments",
        ranks,
        CHAIN_SEGMENTS * len(lanes),
        tuple(side_by_side(lanes, CHAIN_SEGMENTS)),
        everybody if reduces else one,
        one if reduces else everybody,
    )


def root_rank(network: Network, root: int | None) -> int:
    """The rank of a root that is given as a host; the first member unless given."""
    if root is None:
        return 0
    at = np.flatnonzero(network.members == root)
    if not len(at):
        raise ProgramError(f"host {root} is not in the group: give the root as a host of the group")
    return int(at[0])
