"""The links of the plant's fabric that flows take, from the cables that a policy has chosen for them."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.plant import Plant


def links_of_flows(
    plant: Plant, src: Ints, dst: Ints, path: Ints, enter: Ints | None = None, leave: Ints | None = None
) -> tuple[Ints, Ints]:
    """CSR (start, link) of flows between GPUs: inside their server, over their leaf, or up and down over switches.

    `path` is [flow, hop], links of `ropewalk.tenancy.paths`, a row for every flow between leafs, in their order. On
    rails `enter` and `leave` are the GPUs at which flows enter and leave the network, themselves unless given.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x1x4", gpus_per_server=2)
    >>> flows = np.array([0, 0, 0]), np.array([1, 2, 4])
    >>> start, link = links_of_flows(small, *flows, path=np.array([[0, 3]]))
    >>> [[small.fabric().link_name(one) for one in link[a:b]] for a, b in zip(start, start[1:])][2]
    ['server0.0->leaf0', 'leaf0->spine0', 'spine0->leaf1', 'leaf1->server2.0']
    """
    first, last = src if enter is None else enter, dst if leave is None else leave
    size = plant.gpus_per_server
    inside = src // size == dst // size
    first, last = np.where(inside, src, first), np.where(inside, dst, last)
    cross = np.flatnonzero((plant.leaf_of_gpu[first] != plant.leaf_of_gpu[last]) & ~inside)
    if len(path) != len(cross):
        raise ValueError(f"{len(cross)} flows cross leafs, and {len(path)} have cables: choose one for each")
    over = np.full((len(src), 2 + path.shape[1] + 4), -1, np.int64)
    over[:, 0] = np.where(first != src, plant.inside_up(src), -1)
    over[:, 1] = np.where(first != src, plant.inside_up(first) + 1, -1)
    over[:, 2] = np.where(inside, plant.inside_up(src), plant.nic_up(first))
    # Cables stand behind the NICs of all GPUs.
    over[cross, 3:-3] = np.where(path >= 0, 2 * plant.gpus + path, -1)
    over[:, -3] = np.where(inside, plant.inside_up(dst), plant.nic_up(last)) + 1
    over[:, -2] = np.where(last != dst, plant.inside_up(last), -1)
    over[:, -1] = np.where(last != dst, plant.inside_up(dst) + 1, -1)
    start = np.concatenate([[0], np.cumsum((over >= 0).sum(axis=1))]).astype(np.int64)
    return start, over[over >= 0]
