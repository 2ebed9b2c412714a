"""The links of the plant's fabric that flows take, from the cables that a policy has chosen for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.plant import Plant

Ints = NDArray[np.int64]


def links_of_flows(plant: Plant, src: Ints, dst: Ints, up: Ints, down: Ints) -> tuple[Ints, Ints]:
    """CSR (start, link) of flows between GPUs: inside their server, over their leaf, or up and down over a spine.

    `up` and `down` are links of `ropewalk.tenancy.paths`, one entry for every flow between leafs, in their order.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x1x4", gpus_per_server=2)
    >>> flows = np.array([0, 0, 0]), np.array([1, 2, 4])
    >>> start, link = links_of_flows(small, *flows, up=np.array([0]), down=np.array([3]))
    >>> [[small.fabric().link_name(one) for one in link[a:b]] for a, b in zip(start, start[1:])][2]
    ['server0.0->leaf0', 'leaf0->spine0', 'spine0->leaf1', 'leaf1->server2.0']
    """
    cross = np.flatnonzero(plant.leaf_of_gpu[src] != plant.leaf_of_gpu[dst])
    if len(up) != len(cross) or len(down) != len(cross):
        raise ValueError(f"{len(cross)} flows cross leafs, and {len(up)} have cables: choose one for each")
    inside = src // plant.gpus_per_server == dst // plant.gpus_per_server
    hops = np.full(len(src), 2, np.int64)
    hops[cross] = 4
    start = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
    link = np.zeros(start[-1], np.int64)
    link[start[:-1]] = np.where(inside, plant.inside_up(src), plant.nic_up(src))
    link[start[1:] - 1] = np.where(inside, plant.inside_up(dst), plant.nic_up(dst)) + 1
    # Cables stand behind the NICs of all GPUs.
    link[start[cross] + 1] = 2 * plant.gpus + up
    link[start[cross] + 2] = 2 * plant.gpus + down
    return start, link
