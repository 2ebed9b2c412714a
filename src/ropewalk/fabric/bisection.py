"""Bisection bandwidth: a builder's closed form where it has one, otherwise the narrowest cut a search can find.

The search starts from the host order and from the smoothest eigenvectors of the graph (spectral bisection), and
improves each start by moving one node at a time, keeping the hosts balanced (Fiduccia and Mattheyses, 1982).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.fabric import Fabric

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_NODES = 6000
"""Nodes up to which cuts are improved node by node; above, the best starting cut is the answer."""
_PASSES = 8


@runtime_checkable
class KnowsBisection(Protocol):
    """A builder with a closed form; None where it does not hold for its parameters."""

    def bisection(self) -> float | None: ...


def bisection(fabric: Fabric) -> tuple[float | None, bool]:
    """Bytes/s in one direction across the narrowest cut into halves, and whether it is only the best one found."""
    if fabric.hosts < 2:
        return None, False
    known = fabric.builder.bisection() if isinstance(fabric.builder, KnowsBisection) else None
    return (known, False) if known is not None else (_searched(fabric), True)


def _searched(fabric: Fabric) -> float:
    from scipy.sparse import csr_array

    src, dst = fabric.link_src, fabric.link_dst
    # A cut is judged on the mean of both directions, which is what every balanced split of a duplex fabric has.
    ends = (np.concatenate([src, dst]), np.concatenate([dst, src]))
    graph = csr_array((np.tile(fabric.bandwidth / 2, 2), ends), shape=(fabric.nodes, fabric.nodes))
    graph.sum_duplicates()
    best = np.inf
    for order in _orders(fabric, graph):
        side = _halves(fabric, graph, order)
        if fabric.nodes <= MOST_NODES:
            side = _improved(fabric, graph, side)
        forth = float(fabric.bandwidth[side[src] & ~side[dst]].sum())
        back = float(fabric.bandwidth[~side[src] & side[dst]].sum())
        best = min(best, forth, back)
    return best


def _orders(fabric: Fabric, graph: csr_array[Any]) -> list[NDArray[np.float64]]:
    """Values by which hosts are sorted before they are halved."""
    orders = [np.arange(fabric.nodes, dtype=float)]
    if 3 < fabric.nodes <= MOST_NODES:
        from ropewalk.fabric.spectral import smooth_vectors

        orders.extend(smooth_vectors(graph, 3).T)
    return orders


def _halves(fabric: Fabric, graph: csr_array[Any], order: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The first half of the hosts in this order on one side, and every switch where most of its bandwidth is."""
    side = np.zeros(fabric.nodes, bool)
    side[np.argsort(order[: fabric.hosts], kind="stable")[: fabric.hosts // 2]] = True
    weight = side[:].astype(float) - (~side).astype(float)
    weight[fabric.hosts :] = 0
    for _ in range(int(fabric.level.max(initial=0)) + 1):  # sides climb one tier a round
        pull = graph @ weight
        weight[fabric.hosts :] = np.sign(pull[fabric.hosts :])
    side[fabric.hosts :] = weight[fabric.hosts :] > 0
    undecided = np.flatnonzero(weight[fabric.hosts :] == 0) + fabric.hosts
    side[undecided[::2]] = True
    return side


def _improved(fabric: Fabric, graph: csr_array[Any], side: NDArray[np.bool_]) -> NDArray[np.bool_]:
    for _ in range(_PASSES):
        better = _one_pass(fabric, graph, side)
        if better is None:
            break
        side = better
    return side


def _one_pass(fabric: Fabric, graph: csr_array[Any], start: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Move every node once, always the one that narrows the cut most; answer the narrowest balanced split passed."""
    side = start.copy()
    sign = np.where(side, 1.0, -1.0)
    gain = -sign * (graph @ sign)  # outside minus inside bandwidth: what moving a node takes off the cut
    free = np.ones(fabric.nodes, bool)
    is_host = np.arange(fabric.nodes) < fabric.hosts
    surplus = int(2 * side[: fabric.hosts].sum()) - fabric.hosts  # hosts here minus hosts there
    slack = fabric.hosts % 2
    moved: list[int] = []
    saved, best, best_length = 0.0, float(graph.data.sum()) * 1e-12, 0
    for _ in range(fabric.nodes):
        heavy = side if surplus > 0 else ~side
        allowed = free if abs(surplus) <= slack else free & (~is_host | heavy)
        node = int(np.argmax(np.where(allowed, gain, -np.inf)))
        if not allowed[node]:
            break
        saved += float(gain[node])
        if is_host[node]:
            surplus += -2 if side[node] else 2
        free[node] = False
        moved.append(node)
        at = slice(graph.indptr[node], graph.indptr[node + 1])
        others = graph.indices[at]
        gain[others] += 2 * graph.data[at] * sign[node] * sign[others]
        gain[node] = -gain[node]
        side[node] = not side[node]
        sign[node] = -sign[node]
        if abs(surplus) <= slack and saved > best:
            best, best_length = saved, len(moved)
    if best_length == 0:
        return None
    better = start.copy()
    better[moved[:best_length]] ^= True
    return better
