"""Find a sub-tree over several pods: p pods, l leafs in each, s lanes and l cores in every lane, all links free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.rows import LeafRows, servers_of
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Nothing, Undecided


@dataclass(frozen=True)
class FoundTree:
    """Leafs, or on rails units, of every pod of a job: a row of equally many for each pod."""

    leafs: tuple[tuple[int, ...], ...]
    cheapest: bool
    """Proved to be the best fit; False where the budget ran out before every other choice was excluded."""
    nodes: int = 0


def search_subtree(
    state: Occupancy,
    pods: int,
    leafs: int,
    spines: int,
    *,
    node_budget: int = NODE_BUDGET,
    spine_words: NDArray[np.uint64] | None = None,
) -> FoundTree | Nothing | Undecided:
    """The best fit over p pods: the leafs with fewest free cables; a second search asks only whether there is anything.

    `spine_words` stand for the free cores of every spine where the question is what other ones would change.
    """
    from ropewalk.tenancy.vclos import _biclique_kernel as status_of
    from ropewalk.tenancy.vclos import _clos_kernel as choices
    from ropewalk.tenancy.vclos._subtree_kernel import cheapest_subtree

    rows, tiers = LeafRows.of(state), state.plant.tiers
    fit = state.idle_servers, rows.reached, rows.ports, rows.first, servers_of(state, spines), spines
    cores = state.core_links.words if spine_words is None else spine_words
    shape = pods, leafs, rows.rails, spines, node_budget
    nodes = 0
    for freest in (False, True):
        found, start = choices.candidates(*fit, freest)
        cost = np.zeros_like(found) if freest else rows.ports[found]
        status, visited, chosen = cheapest_subtree(rows.words[found], cost, start, cores, tiers.first_spine, *shape)
        nodes += visited
        if status != status_of.UNKNOWN:
            break
    if status == status_of.NONE:
        return Nothing(nodes)
    if status == status_of.UNKNOWN:
        return Undecided(nodes)
    by_pod = found[chosen].reshape(pods, leafs)
    trees = sorted(tuple(sorted(row)) for row in by_pod.tolist())
    return FoundTree(tuple(trees), status == status_of.BEST and not freest, nodes)
