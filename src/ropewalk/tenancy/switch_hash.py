"""ECMP as switches do it: MurmurHash3 of addresses and UDP ports at every switch, seeded with the number of the switch.

The replay hashes flows with a mixer of its own (`paths.py`). This is the hash of the RDMA fork of ns-3, on the fabric
of the plant; another destination port is another realisation of it.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints, Ints32
from ropewalk.ragged import ranges
from ropewalk.routing import murmur
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import Choose, SwitchNetwork, hops_of


def switch_hash(port: int) -> Choose:
    """The links of flows between leafs, as switches would hash packets to this UDP port."""
    route = murmur(port)

    def choose(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
        plant = network.plant
        path = np.full((len(src), hops_of(plant)), -1, np.int32)
        if not len(src):
            return path
        gpus = allocation.columns.gpus
        start, end = gpus[src], gpus[dst]
        routes = route(plant.fabric(), start.astype(np.int32), end.astype(np.int32))
        row = routes.find(start, end)
        inner = routes.hops[row] - 2  # without the links of the two NICs, which stand before all cables
        place = ranges(np.zeros(len(row), np.int64), inner)
        flow = np.repeat(np.arange(len(row)), inner)
        path[flow, place] = routes.link[routes.link_start[row][flow] + 1 + place] - 2 * plant.gpus
        return path

    return choose
