"""A drawing of a graph that nobody has a drawing of: far apart in links is far apart on the page.

Distances from a few pivots are flattened to two dimensions (Brandes and Pich, "Eigensolver Methods for Progressive
Multidimensional Scaling of Large Data", 2006); small graphs are then relaxed with springs, so that nodes that look
alike to every pivot move apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.fabric import Fabric

_PIVOTS = 24
_RELAX_UP_TO = 600
_ROUNDS = 60
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def force_layout(fabric: Fabric) -> NDArray[np.float64]:
    """Positions of all nodes, the same on every run."""
    nodes = fabric.nodes
    if nodes == 1:
        return np.zeros((1, 2))
    at = _flattened(_distances_from_pivots(fabric))
    # Nodes that no pivot tells apart fall on one point: a small spiral over the node order separates them.
    turn = np.arange(nodes) * _GOLDEN_ANGLE
    at += 0.3 * np.sqrt((np.arange(nodes) + 1) / nodes)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return _relaxed(fabric, at) if nodes <= _RELAX_UP_TO else at


def _distances_from_pivots(fabric: Fabric) -> NDArray[np.float64]:
    """Distances in links from pivots that are far from each other, a column each; other parts are just outside."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    shape = (fabric.nodes, fabric.nodes)
    graph = csr_array((np.ones(fabric.links), (fabric.link_src, fabric.link_dst)), shape=shape)
    columns: list[NDArray[np.float64]] = []
    pivot = 0
    for _ in range(min(_PIVOTS, fabric.nodes)):
        distance = np.asarray(dijkstra(graph, directed=False, unweighted=True, indices=[pivot]))[0]
        columns.append(np.where(np.isfinite(distance), distance, fabric.nodes**0.5 + 2))
        pivot = int(np.min(columns, axis=0).argmax())
    return np.column_stack(columns)


def _flattened(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two directions in which the doubly centred squares of the distances spread most."""
    square = distance**2
    centred = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    _, vectors = np.linalg.eigh(centred.T @ centred)
    top = vectors[:, :-3:-1] if vectors.shape[1] > 1 else np.column_stack([vectors, np.zeros_like(vectors)])
    top = top * np.where(top[np.abs(np.round(top, 9)).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    at = centred @ top
    spread = np.sqrt((at**2).mean(axis=0).sum()) or 1.0
    return np.asarray(at / spread * np.sqrt(len(at)), np.float64)


def _relaxed(fabric: Fabric, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Springs on links, repulsion between all nodes, steps that shrink to nothing (Fruchterman and Reingold, 1991)."""
    src, dst, nodes = fabric.link_src, fabric.link_dst, fabric.nodes
    for step in np.linspace(0.1 * np.sqrt(nodes), 0.01, _ROUNDS):
        apart = at[:, None] - at[None]
        square = (apart**2).sum(axis=2) + 1e-9
        push = (apart / square[:, :, None]).sum(axis=1)
        along = at[dst] - at[src]
        pull = along * np.sqrt((along**2).sum(axis=1))[:, None]
        for axis in (0, 1):
            push[:, axis] += np.bincount(src, pull[:, axis] / 2, nodes) - np.bincount(dst, pull[:, axis] / 2, nodes)
        length = np.sqrt((push**2).sum(axis=1))[:, None]
        at = at + push / np.maximum(length, 1e-9) * np.minimum(length, step)
    return at
