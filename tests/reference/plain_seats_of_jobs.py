"""First stages and shared links in plain Python: what the kernels of `ropewalk.tenancy` must answer, word for word."""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant


def first_stages(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting | None:
    """A reason to wait that no choice of links could remove, or a place under one leaf; None where leafs must share."""
    return refused(state, job, gpus) or under_one_leaf(state, job, gpus)


def servers_needed(state: Occupancy, gpus: int) -> int:
    """The fewest servers that hold a job."""
    return -(-gpus // state.plant.gpus_per_server)


def refused(state: Occupancy, job: str, gpus: int) -> Waiting | None:
    """Too few GPUs, or enough of them but too few servers with enough; None where neither stands in the way."""
    if gpus < 1:
        raise ValueError(f"job {job} asks for {gpus} GPUs: ask for 1 or more")
    plant = state.plant
    if gpus > state.free:
        never = gpus > plant.gpus
        fact = f"{plant.name} has {plant.gpus}" if never else f"{state.free} {'is' if state.free == 1 else 'are'} free"
        return Waiting(Reason.GPU_SHORTAGE, f"{gpus} GPUs are requested, {fact}", never=never)
    share = min(gpus, plant.gpus_per_server)
    fitting = int(np.count_nonzero(state.free_in_server >= share))
    needed = servers_needed(state, gpus)
    if fitting >= needed:
        return None
    return Waiting(
        Reason.SERVER_FRAGMENTATION,
        f"{state.free} GPUs are free, but only {fitting} server{'s' * (fitting != 1)} with {share} of them, "
        f"and {gpus} GPUs need {needed}",
        never=needed > plant.servers,
    )


def under_one_leaf(state: Occupancy, job: str, gpus: int) -> Allocation | None:
    """Best fit: of the leafs that hold the whole job, the one with the fewest free GPUs."""
    plant = state.plant
    share = min(gpus, plant.gpus_per_server)
    fitting = state.free_in_server >= share
    per_leaf = np.bincount(plant.server_leaf[fitting], minlength=plant.leafs)
    leafs = np.flatnonzero(per_leaf >= servers_needed(state, gpus))
    if not len(leafs):
        return None
    leaf = int(leafs[np.argmin(state.free_on_leaf[leafs])])
    if gpus <= plant.gpus_per_server:
        chosen, stage = _inside_one_server(state, leaf, gpus), "server"
    else:
        chosen, stage = over_idle_servers(state, leaf, gpus), "leaf"
    return Allocation(
        job=job,
        gpus=tuple(chosen),
        stage="server" if stage == "server" else "leaf",
        leafs=(leaf,),
        spines=(),
        links=(),
        spine_of_gpu=(OWN_LEAF,) * gpus,
        leaf_of_gpu=(leaf,) * gpus,
    )


def over_idle_servers(state: Occupancy, leaf: int, gpus: int) -> list[int]:
    """GPUs of the fewest idle servers of a leaf: evenly where that is possible, else with the last one not full."""
    size = state.plant.gpus_per_server
    needed = servers_needed(state, gpus)
    servers = state.idle_servers_of(leaf)[:needed].tolist()
    if len(servers) < needed:
        raise ValueError(f"leaf {leaf} has {len(servers)} idle servers, {gpus} GPUs need {needed}: choose another")
    share = gpus // needed if gpus % needed == 0 else size
    seats = [server * size + place for server in servers for place in range(share)]
    return seats[:gpus]


def _inside_one_server(state: Occupancy, leaf: int, gpus: int) -> list[int]:
    """The server whose smallest sufficient group of free GPUs is smallest, so that large groups stay whole."""
    size = state.plant.gpus_per_server
    first, last = (int(at) for at in state.plant.first_server[leaf : leaf + 2])
    best: tuple[int, int, int, int] | None = None
    for server in range(first, last):
        if state.free_in_server[server] < gpus:
            continue
        group, start = buddy_group(int(state.free_gpus[server]), size, gpus)
        key = (group, int(state.free_in_server[server]), server, start)
        best = key if best is None else min(best, key)
    assert best is not None, "the leaf was chosen because one of its servers fits"
    group, _, server, start = best
    free = [place for place in range(size) if state.free_gpus[server] >> place & 1]
    seats = list(range(start, start + gpus)) if group <= size else free[:gpus]
    return [server * size + place for place in seats]


def buddy_group(free: int, size: int, gpus: int) -> tuple[int, int]:
    """(size, first place) of the smallest free aligned power-of-two group that holds `gpus`, grown while it is free.

    Where the free GPUs are scattered there is none: then its size is one more than a server's.

    >>> buddy_group(0b11110100, 8, 2)
    (4, 4)
    >>> buddy_group(0b11110110, 8, 2)
    (4, 4)
    >>> buddy_group(0b00110110, 8, 3)
    (9, 0)
    """
    if gpus == size and free == (1 << size) - 1:
        return size, 0
    found = (size + 1, 0)
    width = 1 << (gpus - 1).bit_length()
    while width <= size:
        for start in range(0, size - width + 1, width):
            whole = ((1 << width) - 1) << start
            if free & whole == whole and not _larger_is_free(free, size, start, width):
                found = min(found, (width, start))
        width *= 2
    return found


def _larger_is_free(free: int, size: int, start: int, width: int) -> bool:
    """Is the group half of a larger free one?"""
    start -= start % (2 * width)
    whole = ((1 << 2 * width) - 1) << start
    return start + 2 * width <= size and free & whole == whole


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
