"""Flows on rails: a GPU that sends to another rail hands over inside its server, to the GPU on that rail.

This is what NCCL calls PXN: bytes for rail j enter the network at the sender's own GPU on rail j, so that they never
cross from rail to rail over switches. Where the job does not have that GPU, the receiver's server hands over instead;
where it has neither, the flow crosses from leaf to leaf.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints


def relayed(gpus: Ints, rails: int, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
    """(ranks at which flows enter the network, ranks at which they leave it); `gpus` are those of the ranks.

    >>> two_servers_of_four = np.arange(8)
    >>> relayed(two_servers_of_four, 4, np.array([0, 0, 0]), np.array([3, 4, 6]))
    (array([0, 0, 2]), array([3, 4, 6]))
    >>> last_server_has_two = np.array([0, 1, 2, 3, 4, 5])
    >>> relayed(last_server_has_two, 4, np.array([5]), np.array([2]))
    (array([5]), array([1]))
    """
    if rails == 1:
        return src, dst
    a, b = gpus[src], gpus[dst]
    apart = (a // rails != b // rails) & (a % rails != b % rails)
    order = np.argsort(gpus)
    near = _rank(gpus, order, a // rails * rails + b % rails)
    far = _rank(gpus, order, b // rails * rails + a % rails)
    enter = np.where(apart & (near >= 0), near, src)
    return enter, np.where(apart & (near < 0) & (far >= 0), far, dst)


def _rank(gpus: Ints, order: Ints, wanted: Ints) -> Ints:
    """The rank of each of these GPUs; -1 for those that the job does not have."""
    place = np.minimum(np.searchsorted(gpus, wanted, sorter=order), len(gpus) - 1)
    return np.where(gpus[order[place]] == wanted, order[place], -1)
