"""How collectives are made for a group: rings through its servers, levels of its fabric, schedules of its network.

Beside every maker that does not apply everywhere stands the check that says so, in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.exchange import direct_all_to_all, hierarchical_all_to_all
from ropewalk.collectives.group import Group
from ropewalk.collectives.hips import Process, hips, near_square
from ropewalk.collectives.on_fabric import best_hierarchy, fabric_cycles
from ropewalk.collectives.over_servers import chain_broadcast, chain_reduce, server_rings
from ropewalk.collectives.peers import Inside, mesh_inside
from ropewalk.collectives.program import Program
from ropewalk.collectives.ring import rings
from ropewalk.collectives.rooted import binomial_broadcast, binomial_reduce
from ropewalk.collectives.scatter_gather import ScatterGather
from ropewalk.collectives.schedule import Schedule

Maker = Callable[[Group], Program | Schedule]
Makers = Mapping[Act, Maker]
Fits = Callable[[Act, Group], str | None]


def halves(made: Callable[[Group], ScatterGather], name: str) -> dict[Act, Maker]:
    """An all-reduce and its two halves."""
    return {
        Act.ALL_REDUCE: lambda group: made(group).all_reduce(name),
        Act.ALL_GATHER: lambda group: made(group).all_gather(f"{name} all-gather"),
        Act.REDUCE_SCATTER: lambda group: made(group).reduce_scatter(f"{name} reduce-scatter"),
    }


def of_ranks(**makers: Callable[[int], Program]) -> dict[Act, Maker]:
    """Programs that depend on the number of ranks alone."""

    def maker(make: Callable[[int], Program]) -> Maker:
        return lambda group: make(group.ranks)

    return {Act[act.upper()]: maker(make) for act, make in makers.items()}


BINOMIAL: dict[Act, Maker] = {
    Act.BROADCAST: lambda group: binomial_broadcast(group.ranks, group.root),
    Act.REDUCE: lambda group: binomial_reduce(group.ranks, group.root),
}
CHAINS: dict[Act, Maker] = {
    Act.BROADCAST: lambda group: chain_broadcast(group.servers, root=group.root),
    Act.REDUCE: lambda group: chain_reduce(group.servers, root=group.root),
}


def rings_of(group: Group) -> ScatterGather:
    cycles = fabric_cycles(group.fabric) if group.fabric is not None and group.is_whole_fabric else []
    return rings(cycles, both_ways=True) if cycles else server_rings(group.servers)


def one_ring(group: Group, both_ways: bool) -> ScatterGather:
    cycles = fabric_cycles(group.fabric) if group.fabric is not None and group.is_whole_fabric else []
    return rings(cycles[:1] or [np.arange(group.ranks)], both_ways)


def hierarchy_of_fabric(group: Group) -> ScatterGather:
    if group.fabric is not None and group.fabric.builder is not None and group.is_whole_fabric:
        return best_hierarchy(group.fabric)
    grid = group.grid
    return hips(np.arange(group.ranks).reshape(near_square(group.ranks)) if grid is None else grid, _TWO_LEVELS)


def blocks_first(group: Group, inside: Inside) -> ScatterGather:
    grid = group.grid
    if grid is None:  # one server, or one rank in each: a single level
        grid = np.arange(group.ranks).reshape(-1, group.block or group.servers[0])
    return hips(grid, [Process((1, 0), inside)])


def hierarchical_exchange(group: Group) -> Program:
    """Two rounds over servers; where there is only one level, a direct exchange is what is left of them."""
    grid = group.grid
    return direct_all_to_all(group.ranks) if grid is None else hierarchical_all_to_all(*grid.shape)


def equal_blocks(act: Act, group: Group) -> str | None:
    if act is not Act.ALL_TO_ALL or group.grid is None:
        return equal_servers(act, group)
    if np.array_equal(group.grid.ravel(), np.arange(group.ranks)):
        return None
    return "needs ranks numbered server by server"


_TWO_LEVELS = [Process((1, 0), mesh_inside)]


def equal_servers(act: Act, group: Group) -> str | None:
    if group.grid is not None or len(set(group.servers)) == 1:
        return None
    sizes = ", ".join(map(str, sorted(set(group.servers))))
    return f"needs equally many ranks per server, and servers have {sizes}"


def whole_blocks(act: Act, group: Group) -> str | None:
    if group.block and group.ranks % group.block:
        return f"needs whole servers, and {group.ranks} ranks are not whole servers of {group.block}"
    return None if group.block else equal_servers(act, group)


def no_prime(act: Act, group: Group) -> str | None:
    whole = group.fabric is not None and group.fabric.builder is not None and group.is_whole_fabric
    if whole or group.grid is not None or near_square(group.ranks)[1] > 1:
        return None
    return f"needs two levels, and {group.ranks} ranks have no divisors"


def halves_of_pairs(act: Act, group: Group) -> str | None:
    return None if act in (Act.ALL_REDUCE, *BINOMIAL) else power_of_two(act, group)


def spare_rank(act: Act, group: Group) -> str | None:
    return None if group.spare else "has a rank that only serves, but here every rank has data to exchange"


def power_of_two(act: Act, group: Group) -> str | None:
    if group.ranks & (group.ranks - 1) == 0:
        return None
    return f"needs a power of two of ranks, and there are {group.ranks}"


def equal_shards(act: Act, group: Group) -> str | None:
    if group.given is not None and not group.given.equal_shards:
        return "supports equal shards only, and these differ"
    return None


def made_for_network(name: str, acts: tuple[Act, ...]) -> dict[Act, Maker]:
    """Makers that load Numba and SciPy when they are called."""

    def make(act: Act, group: Group) -> Schedule:
        from ropewalk.collectives.synthesised import MAKERS

        return MAKERS[name](act, group)

    return {act: partial(make, act) for act in acts}


ALL_BUT_EXCHANGES = tuple(act for act in EXCHANGES if act is not Act.ALL_TO_ALL)
