"""What exchanges that run beside computations send, and how long they take if nothing hides them."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.planner.channels import IN_LAYERS
from ropewalk.planner.layers import Hidden


def hidden_bytes(hidden: Floats) -> Floats:
    """By channel: bytes of all exchanges beside computations in some passes of some layers.

    >>> once, twice = [0.1, 8.0, 1.0, 3.0, -1.0], [0.2, 5.0, 1.0, 3.0, 4.0]
    >>> hidden_bytes(np.array([[[once]], [[twice]]])).tolist()
    [0.0, 0.0, 0.0, 13.0, 5.0, 0.0, 0.0, 0.0]
    """
    found = np.zeros(IN_LAYERS)
    for column in (Hidden.CHANNEL, Hidden.OTHER):
        there = (hidden[..., Hidden.TIMES] > 0) & (hidden[..., column] >= 0)
        np.add.at(found, hidden[there][:, column].astype(np.int64), hidden[there][:, Hidden.BYTES])
    return found


def hidden_seconds(hidden: Floats, costs: Floats) -> Floats:
    """The same in seconds, by layer and pass, where communication costs so much per start and byte of a channel."""
    longest = np.zeros(hidden.shape[:-1])
    for column in (Hidden.CHANNEL, Hidden.OTHER):
        there = (hidden[..., Hidden.TIMES] > 0) & (hidden[..., column] >= 0)
        of_channel = costs[np.where(there, hidden[..., column], 0).astype(np.int64)]
        alone = hidden[..., Hidden.TIMES] * of_channel[..., 0] + hidden[..., Hidden.BYTES] * of_channel[..., 1]
        longest = np.maximum(longest, np.where(there, alone, 0.0))
    return np.asarray(longest.sum(-1), np.float64)
