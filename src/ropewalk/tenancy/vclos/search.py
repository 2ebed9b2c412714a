"""Find l leafs with s common free spines on a cluster as it is now; the search decides nearly every request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.occupancy import Occupancy

NODE_BUDGET = 50_000
"""Nodes of a search before it gives up; near saturation a request takes tens of them."""


@dataclass(frozen=True)
class Found:
    """Leafs that share enough free spines."""

    leafs: tuple[int, ...]
    cheapest: bool
    """Proved to be the best fit; False where the budget ran out before every other choice was excluded."""
    nodes: int = 0


@dataclass(frozen=True)
class Nothing:
    """Proved: no leafs share enough free spines."""

    nodes: int = 0


@dataclass(frozen=True)
class Undecided:
    """The budget ran out before anything was found."""

    nodes: int = 0


def candidate_leafs(state: Occupancy, gpus_per_leaf: int) -> NDArray[np.int64]:
    """Leafs with enough idle servers and enough free cables to different spines, those with fewest cables first."""
    servers = gpus_per_leaf // state.plant.gpus_per_server
    reach = np.bitwise_count(state.spine_words).sum(axis=1, dtype=np.int64)
    leafs = np.flatnonzero((state.idle_servers >= servers) & (reach >= gpus_per_leaf))
    return leafs[np.argsort(state.ports_of_leaf[leafs], kind="stable")]


def search_leafs(
    state: Occupancy, leafs: int, spines: int, *, node_budget: int = NODE_BUDGET
) -> Found | Nothing | Undecided:
    """The best fit: of all l leafs with s GPUs in idle servers and s common spines, those with fewest free cables.

    Leafs with few free cables share few spines. Where the budget ends before anything was found among them, a second
    search begins with the freest leafs instead and asks only whether there is anything at all.
    """
    from ropewalk.tenancy.vclos import _biclique_kernel as kernel

    rows = candidate_leafs(state, spines)
    if len(rows) < leafs:
        return Nothing()
    words, ports = state.spine_words[rows], state.ports_of_leaf[rows]
    status, nodes, chosen = kernel.cheapest_leafs(words, ports, leafs, spines, node_budget)
    if status == kernel.UNKNOWN:
        rows = rows[::-1]
        status, more, chosen = kernel.cheapest_leafs(
            words[::-1].copy(), np.zeros_like(ports), leafs, spines, node_budget
        )
        status = kernel.FOUND if status == kernel.BEST else status
        nodes += more
    if status == kernel.NONE:
        return Nothing(nodes)
    if status == kernel.UNKNOWN:
        return Undecided(nodes)
    return Found(tuple(sorted(rows[chosen].tolist())), status == kernel.BEST, nodes)


def common_spines(state: Occupancy, leafs: tuple[int, ...], spines: int) -> tuple[int, ...]:
    """Of the spines that all the leafs reach, those with the fewest free cables; in the order of their numbers."""
    shared = np.flatnonzero((state.cables_free[list(leafs)] > 0).all(axis=0))
    fullest = shared[np.argsort(state.ports_of_spine[shared], kind="stable")][:spines]
    return tuple(sorted(fullest.tolist()))
