"""Circuits laid once from one matrix: all-reduces, as rings in the order of their groups, and pairs added together.

Most optical designs take such a matrix. Circuits are set greedily, the largest remaining entry first, each worth half
for every further circuit (`circuits.py`). That all-reduces could take any ring is lost: the matrix fixes neighbours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ropewalk.codesign.circuits import greedy_circuits
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.network import StepNetwork, wired_network
from ropewalk.codesign.routes import router_of
from ropewalk.codesign.traffic import traffic_of
from ropewalk.fabric.wiring import Wiring


def laid_from_one_matrix(demands: Demands, *, degree: int, bandwidth: float, latency: float) -> StepNetwork:
    """Servers joined by duplex circuits for the sum of all that they send; what is not joined is relayed.

    >>> pairs = np.zeros((4, 4))
    >>> pairs[0, 2] = pairs[1, 3] = 1e9
    >>> laid = laid_from_one_matrix(Demands(4, (), pairs), degree=2, bandwidth=1e9, latency=0.0)
    >>> sorted(zip(laid.fabric.link_src.tolist(), laid.fabric.link_dst.tolist()))[:4]
    [(0, 1), (0, 2), (1, 0), (1, 3)]
    """
    servers = demands.servers
    bare = Wiring(servers, degree, True, bandwidth, latency, (), (), 0, degree)
    sent = traffic_of(bare, demands)
    matrix = np.zeros((servers, servers))
    np.add.at(matrix, (sent.source, sent.destination), sent.size_bytes)
    circuits = greedy_circuits(matrix, degree, connect=True)
    low, high = np.nonzero(np.triu(circuits))
    cables = tuple((a, b, int(circuits[a, b])) for a, b in zip(low.tolist(), high.tolist(), strict=True))
    wiring = replace(bare, cables=cables)
    return wired_network(wiring, router_of(wiring, demands), "one-matrix")
