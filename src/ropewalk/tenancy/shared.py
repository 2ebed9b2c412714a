"""GPUs only: jobs get servers and share every link, as under ECMP or plain source routing without isolation."""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, over_idle_servers, servers_needed
from ropewalk.tenancy.plant import Plant


def gpus_only(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """One leaf where one fits, else whole idle servers on as few leafs as possible; no link is reserved.

    The leafs with most idle servers are filled first, and what is left goes to the best-fitting leaf. Only GPUs and
    servers can keep such a job waiting.
    """
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    size = state.plant.gpus_per_server
    taken: dict[int, int] = {}
    missing = servers_needed(state, gpus)
    idle = state.idle_servers.copy()
    while missing:
        enough = np.flatnonzero(idle >= missing)
        leaf = int(enough[np.argmin(idle[enough])]) if len(enough) else int(np.argmax(idle))
        taken[leaf] = min(missing, int(idle[leaf]))
        missing -= taken[leaf]
        idle[leaf] = 0
    leafs = tuple(sorted(taken))
    seats = [gpu for leaf in leafs for gpu in over_idle_servers(state, leaf, taken[leaf] * size)][:gpus]
    return Allocation(
        job=job,
        gpus=tuple(seats),
        stage="shared",
        leafs=leafs,
        spines=(),
        links=(),
        spine_of_gpu=static_spines(state.plant, seats),
        leaf_of_gpu=tuple(state.plant.leaf_of_gpu[seats].tolist()),
        guarantee="none",
    )


def static_spines(plant: Plant, gpus: list[int]) -> tuple[int, ...]:
    """The spine of each GPU where the rule is fixed for the whole plant: by its place on its leaf, round the cables.

    On a leaf with as many cables as GPUs every GPU has an uplink of its own, whoever uses it.
    """
    leafs = set(plant.leaf_of_gpu[gpus].tolist())
    spine_of_cable = {leaf: np.repeat(np.arange(plant.spines), plant.cables[leaf]) for leaf in leafs}
    spines = []
    for gpu in gpus:
        leaf = int(plant.leaf_of_gpu[gpu])
        place = gpu - int(plant.first_server[leaf]) * plant.gpus_per_server
        ways = spine_of_cable[leaf]
        spines.append(int(ways[place % len(ways)]) if len(ways) else OWN_LEAF)
    return tuple(spines)
