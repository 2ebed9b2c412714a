"""The smoothest vectors over a graph: what spectral bisection cuts and what an unknown graph is drawn by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_DENSE_UP_TO = 600


def smooth_vectors(graph: csr_array[Any], count: int) -> NDArray[np.float64]:
    """Columns 1 … count of the eigenvectors of the normalised Laplacian, smoothest first, signs fixed.

    The same graph gives the same columns on every run: the iteration starts from a fixed vector.
    """
    from scipy.sparse import diags_array, eye_array
    from scipy.sparse.linalg import ArpackError, eigsh

    nodes = graph.shape[0]
    degree = np.asarray(graph.sum(axis=1)).ravel()
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    half = diags_array(scale) @ graph @ diags_array(scale)
    count = min(count, nodes - 1)
    if nodes <= _DENSE_UP_TO:
        vectors = np.linalg.eigh(half.toarray())[1][:, ::-1][:, 1 : count + 1]
    else:
        # The largest eigenvalues of A + I are the smallest of the Laplacian, and need no factorisation.
        start = np.cos(np.arange(nodes) * 0.7) + 1.5
        try:
            values, found = eigsh(half + eye_array(nodes), k=count + 1, which="LA", v0=start, tol=1e-4, maxiter=3000)
        except ArpackError as stopped:
            values, found = getattr(stopped, "eigenvalues", np.zeros(0)), getattr(stopped, "eigenvectors", None)
            if found is None or found.shape[1] <= count:
                return _waves(nodes, count)
        vectors = found[:, np.argsort(-values, kind="stable")][:, 1 : count + 1]
    vectors = vectors * scale[:, None]
    largest = np.abs(np.round(vectors, 9)).argmax(axis=0)
    return np.asarray(vectors * np.where(vectors[largest, np.arange(count)] < 0, -1.0, 1.0), np.float64)


def _waves(nodes: int, count: int) -> NDArray[np.float64]:
    """Cosines over the node order, for the graph on which the iteration does not settle."""
    return np.cos(np.pi * np.outer(np.arange(nodes) + 0.5, np.arange(1, count + 1)) / nodes)
