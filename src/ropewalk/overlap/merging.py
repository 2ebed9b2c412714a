"""Merged gradients: put a gradient together with the next one where that saves more start-up than it costs waiting.

MG-WFBP (Shi, Chu, Li: MG-WFBP: Efficient data communication for distributed synchronous SGD algorithms, INFOCOM 2019).
From the output of the model to its input: a gradient is merged into the next one if that one exists before the
exchange of this one would end, and either the exchange could not have begun before that moment anyway, or the wait is
shorter than a start-up. Later exchanges are timed anew after every merge.
"""

from __future__ import annotations

import numpy as np

from ropewalk.overlap.groups import Groups
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import Tensors


def merged_gradients(tensors: Tensors, link: Link) -> Groups:
    """Groups by the greedy rule; they are launched in order.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> close = from_layers([1, 1, 1, 1], backward_s=[0.1] * 4, forward_s=[1] * 4)
    >>> merged_gradients(close, Link(bandwidth=1, start_up_s=1)).members
    ((3, 2, 1, 0),)
    """
    order = tensors.in_ready_order
    ready, size = tensors.ready_s[order], tensors.size_bytes[order]
    ends = []
    free = 0.0
    held = 0.0
    for at in range(len(order)):
        held += float(size[at])
        # The exchanges before this one are settled, so only its own start has to be timed anew.
        start = max(free, float(ready[at]))
        end = start + link.seconds(held)
        if at + 1 < len(order):
            following = float(ready[at + 1])
            if following < end and (start > following or following - start < link.start_up_s):
                continue
        ends.append(at + 1)
        free, held = end, 0.0
    return Groups.cut(order, np.array(ends))
