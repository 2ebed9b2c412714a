"""How well a hypothesis explains measurements.

Measured times scatter around predicted ones by a factor; measurements of one kind (same benchmark and algorithm, inside
a server or across) share a deviation from the model as well, which is no fault of the cluster. So of every kind the
deviation that suits a hypothesis best is taken out, at its price. Scores are -2 log-likelihood, lower is better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SCATTER = 0.05
"""Of like measurements, as a part of their time."""
BIAS = 0.1
"""Of the model for one kind of measurement."""


def scores(residual: NDArray[np.float64], kind: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of hypotheses, by the logarithms of measured over predicted times: a row for each measurement.

    >>> scores(np.log([[1.0, 1.0], [1.0, 2.0]]), np.array([0, 0])).round(1).tolist()
    [0.0, 106.8]
    """
    total = np.zeros(residual.shape[1])
    for one in np.unique(kind):
        part = residual[kind == one]
        count, mean = len(part), part.mean(axis=0)
        spread = ((part - mean) ** 2).sum(axis=0)
        total += spread / SCATTER**2 + count * mean**2 / (SCATTER**2 + count * BIAS**2)
    return total
