"""Find l leafs with s common free spines on a cluster as it is now; the search decides nearly every request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.rows import LeafRows, servers_of

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


def search_leafs(
    state: Occupancy, leafs: int, spines: int, *, node_budget: int = NODE_BUDGET
) -> Found | Nothing | Undecided:
    """The best fit: of all l leafs with s GPUs in idle servers and s common spines, those with fewest free cables.

    Leafs with few free cables share few spines. Where the budget ends before anything was found among them, a second
    search begins with the freest leafs instead and asks only whether there is anything at all.
    """
    from ropewalk.tenancy.vclos import _biclique_kernel as kernel
    from ropewalk.tenancy.vclos import _clos_kernel as choices

    rows = LeafRows.of(state)
    fit = state.idle_servers, rows.reached, rows.ports, rows.first, servers_of(state, spines), spines
    found, start = choices.candidates(*fit, False)
    if len(found) < leafs:
        return Nothing()
    shape = leafs, rows.rails, spines, node_budget
    status, nodes, chosen = kernel.cheapest_in_a_pod(rows.words, rows.ports, found, start, *shape)
    if status == kernel.UNKNOWN:
        found, start = choices.candidates(*fit, True)
        free = np.zeros_like(rows.ports)
        status, more, chosen = kernel.cheapest_in_a_pod(rows.words, free, found, start, *shape)
        status = kernel.FOUND if status == kernel.BEST else status
        nodes += more
    if status == kernel.NONE:
        return Nothing(nodes)
    if status == kernel.UNKNOWN:
        return Undecided(nodes)
    return Found(tuple(sorted(chosen.tolist())), status == kernel.BEST, nodes)


def common_spines(state: Occupancy, leafs: tuple[int, ...], spines: int) -> tuple[int, ...]:
    """Of the spines that all the leafs reach, those with the fewest free cables; in the order of their numbers."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    first = state.plant.tiers.first_spine
    pod = state.plant.tiers.pod_of_leaf[leafs[0]]
    shared = kernel.shared_by(np.array(leafs, np.int64), state.spine_words)
    found = kernel.fullest(shared, state.ports_of_spine[first[pod] : first[pod + 1]])[:spines]
    return tuple(sorted((first[pod] + found).tolist()))
