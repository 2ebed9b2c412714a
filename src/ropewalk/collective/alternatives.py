"""What else runs on a fabric: collectives as libraries have them, each on the same group and over the best routes.

They show how far a schedule that was made for the fabric is ahead. Rank i is member i of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ropewalk.collective.best_ring import best_ring, natural_ring, on_members, root_rank
from ropewalk.collective.blocks import blocks_of
from ropewalk.collective.bruck import bruck_all_gather, bruck_all_reduce, bruck_reduce_scatter
from ropewalk.collective.double_tree import double_tree_all_reduce
from ropewalk.collective.exchange import direct_all_to_all, hierarchical_all_to_all, shift_all_to_all, xor_all_to_all
from ropewalk.collective.halving_doubling import (
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
)
from ropewalk.collective.hips import Process, hips, near_square
from ropewalk.collective.mesh import mesh_all_gather, mesh_all_reduce, mesh_reduce_scatter
from ropewalk.collective.on_fabric import best_hierarchy
from ropewalk.collective.optimum.network import Network
from ropewalk.collective.peers import mesh_inside
from ropewalk.collective.program import Program
from ropewalk.collective.rooted import binomial_broadcast, binomial_reduce
from ropewalk.collective.scatter_gather import ScatterGather
from ropewalk.collective.schedule import Schedule
from ropewalk.collective.trees import binomial_all_reduce
from ropewalk.errors import ProgramError

Alternatives = dict[str, Callable[[], Schedule]]
"""Schedules by the name of what makes them, built when they are called."""

_Programs = dict[str, Callable[[], Program]]


def alternatives(network: Network, collective: str, *, root: int | None = None) -> Alternatives:
    """Everything that fits the collective and the group; a broadcast or reduce has its root, a host, at `root`.

    >>> from ropewalk.collective.optimum import network_of
    >>> from ropewalk.fabric import IdealSwitch
    >>> list(alternatives(network_of(IdealSwitch(6).build()), "allgather"))
    ['ring', 'ring-in-order', 'mesh', 'bruck', 'hips']
    """
    if collective not in _FITTING:
        raise ProgramError(f"no alternatives are known for {collective!r}: choose {', '.join(_FITTING)}")
    if not network.equal_shards and collective in ("allgather", "reducescatter"):
        raise ProgramError("the alternatives of this collective know equal shards only: leave the shards out")
    found: Alternatives = {}
    if collective != "alltoall":
        found["ring"] = partial(best_ring, network, collective, root=root)
        found["ring-in-order"] = partial(natural_ring, network, collective, root=root)
    for name, program in _FITTING[collective](network, root).items():
        found[name] = partial(_scheduled, name, program, network)
    return found


def _scheduled(name: str, program: Callable[[], Program], network: Network) -> Schedule:
    return on_members(name, program(), network)


def _all_gathers(network: Network, root: int | None) -> _Programs:
    ranks = len(network.members)
    programs: _Programs = {"mesh": lambda: mesh_all_gather(ranks), "bruck": lambda: bruck_all_gather(ranks)}
    if _is_power_of_two(ranks):
        programs["halving-doubling"] = lambda: doubling_all_gather(ranks)
    levels = _hierarchy(network)
    if levels is not None:
        programs["hips"] = lambda: levels().all_gather("hips all-gather")
    return programs


def _reduce_scatters(network: Network, root: int | None) -> _Programs:
    ranks = len(network.members)
    programs: _Programs = {"mesh": lambda: mesh_reduce_scatter(ranks), "bruck": lambda: bruck_reduce_scatter(ranks)}
    if _is_power_of_two(ranks):
        programs["halving-doubling"] = lambda: halving_reduce_scatter(ranks)
    levels = _hierarchy(network)
    if levels is not None:
        programs["hips"] = lambda: levels().reduce_scatter("hips reduce-scatter")
    return programs


def _all_reduces(network: Network, root: int | None) -> _Programs:
    ranks = len(network.members)
    programs: _Programs = {
        "mesh": lambda: mesh_all_reduce(ranks),
        "double-tree": lambda: double_tree_all_reduce(ranks),
        "halving-doubling": lambda: halving_doubling_all_reduce(ranks),
        "bruck": lambda: bruck_all_reduce(ranks),
        "binomial": lambda: binomial_all_reduce(ranks),
    }
    levels = _hierarchy(network)
    if levels is not None:
        programs["hips"] = lambda: levels().all_reduce("hips")
    return programs


def _broadcasts(network: Network, root: int | None) -> _Programs:
    ranks, first = len(network.members), root_rank(network, root)
    return {"binomial": lambda: binomial_broadcast(ranks, first)}


def _reduces(network: Network, root: int | None) -> _Programs:
    ranks, first = len(network.members), root_rank(network, root)
    return {"binomial": lambda: binomial_reduce(ranks, first)}


def _all_to_alls(network: Network, root: int | None) -> _Programs:
    ranks = len(network.members)
    programs: _Programs = {"shift": lambda: shift_all_to_all(ranks), "direct": lambda: direct_all_to_all(ranks)}
    if _is_power_of_two(ranks):
        programs["xor"] = lambda: xor_all_to_all(ranks)
    blocks = blocks_of(network)
    # The hierarchical exchange counts on groups of consecutive ranks.
    if blocks is not None and np.array_equal(blocks.ravel(), np.arange(ranks)):
        groups, size = blocks.shape
        programs["hierarchical"] = lambda: hierarchical_all_to_all(groups, size)
    return programs


_FITTING: Mapping[str, Callable[[Network, int | None], _Programs]] = {
    "allgather": _all_gathers,
    "reducescatter": _reduce_scatters,
    "allreduce": _all_reduces,
    "broadcast": _broadcasts,
    "reduce": _reduces,
    "alltoall": _all_to_alls,
}


def _is_power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _hierarchy(network: Network) -> Callable[[], ScatterGather] | None:
    """Levels of the fabric where the group is all of it; else blocks of members, or a near-square; None for primes."""
    fabric, ranks = network.fabric, len(network.members)
    if fabric.builder is not None and np.array_equal(network.members, np.arange(fabric.hosts)):
        return lambda: best_hierarchy(fabric)
    grid = blocks_of(network)
    if grid is None:
        groups, size = near_square(ranks)
        if size == 1:
            return None
        grid = np.arange(ranks).reshape(groups, size)
    return lambda: hips(grid, [Process((1, 0), mesh_inside)])
