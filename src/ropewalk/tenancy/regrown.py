"""GPUs for a running job that grows or shrinks: ways to keep those that it has, the best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy


def regrown(state: Occupancy, held: Allocation, gpus: int, *, equal: bool) -> Iterator[list[int]]:
    """Choices of so many GPUs with as many as possible of a job's own, on a state in which the job holds nothing.

    `equal`: over several leafs only equal numbers of GPUs in whole servers, as isolation asks for them. GPUs are in
    rank order: leaf by leaf, on every leaf those that the job had before the new ones; on rails unit by unit, in every
    server from rail to rail.
    """
    own: dict[int, list[int]] = {}
    for gpu, leaf in zip(held.gpus, held.leaf_of_gpu, strict=True):
        own.setdefault(leaf // state.plant.rails, []).append(gpu)  # on rails, by unit
    if gpus < held.size:
        yield from _smaller(own, gpus, state.plant.gpus_per_server, equal)
    else:
        yield from _larger(state, own, gpus, equal)


def _smaller(own: dict[int, list[int]], gpus: int, size: int, equal: bool) -> Iterator[list[int]]:
    """On fewer leafs where that is possible, else fewer on each."""
    for count in range(1, len(own) + 1):
        leafs = list(own)[:count]
        share, rest = divmod(gpus, count)
        fits = all(len(own[leaf]) >= share for leaf in leafs) and not rest
        if fits and (count == 1 or share % size == 0):
            yield [gpu for leaf in leafs for gpu in own[leaf][:share]]
    if not equal:
        yield [gpu for leaf in own for gpu in own[leaf]][:gpus]


def _larger(state: Occupancy, own: dict[int, list[int]], gpus: int, equal: bool) -> Iterator[list[int]]:
    """More on its own leafs where they have room, else other leafs beside them."""
    size = state.plant.gpus_per_server
    most = max(len(seats) for seats in own.values())
    for count in range(len(own), min(state.plant.units, gpus) + 1):
        share, rest = divmod(gpus, count)
        if rest or share < most or (count > 1 and share % size):
            continue
        seats = {leaf: _grown(state, leaf, kept, share) for leaf, kept in own.items()}
        others = _beside(state, list(own), count - len(own), share)
        if others is None or not all(len(chosen) == share for chosen in seats.values()):
            continue
        for leaf in others:
            seats[leaf] = _grown(state, leaf, [], share)
        yield _pod_by_pod(state, seats)
    if not equal:
        yield from _anywhere(state, own, gpus)


def _anywhere(state: Occupancy, own: dict[int, list[int]], gpus: int) -> Iterator[list[int]]:
    """As many more as each of its leafs has, then the emptiest of the others."""
    missing = gpus - sum(map(len, own.values()))
    seats = {}
    for leaf in (*own, *_emptiest(state, own)):
        kept = own.get(leaf, [])
        chosen = _grown(state, leaf, kept, len(kept) + missing)
        missing -= len(chosen) - len(kept)
        if chosen:
            seats[leaf] = chosen
        if not missing:
            yield _pod_by_pod(state, seats)
            return


def _pod_by_pod(state: Occupancy, seats: dict[int, list[int]]) -> list[int]:
    """GPUs leaf by leaf, and leafs pod by pod, in the order in which pods come first."""
    pods = state.plant.tiers.pod_of_leaf[np.array(list(seats)) * state.plant.rails].tolist()
    order = {pod: place for place, pod in reversed(list(enumerate(pods)))}
    ranked = sorted(zip(pods, seats.values(), strict=True), key=lambda pair: order[pair[0]])
    return [gpu for _, chosen in ranked for gpu in chosen]


def _grown(state: Occupancy, leaf: int, kept: list[int], share: int) -> list[int]:
    """The GPUs kept on a leaf and more: of the servers it is on first, then of idle ones; at most so many."""
    size = state.plant.gpus_per_server
    chosen = list(kept)
    mine = list(dict.fromkeys(gpu // size for gpu in kept))
    idle = [server for server in state.idle_servers_of(leaf).tolist() if server not in mine]
    for server in (*mine, *idle):
        for place in range(size):
            gpu = server * size + place
            free = state.free_in_server[server] and int(state.free_gpus[server]) >> place & 1
            if len(chosen) < share and free and gpu not in kept:
                chosen.append(gpu)
    return _by_server(chosen, size, in_turn=state.plant.rails > 1)


def _by_server(gpus: list[int], size: int, *, in_turn: bool) -> list[int]:
    """Server by server, in the order in which servers come first; each `in_turn`, from rail to rail."""
    order = {server: place for place, server in enumerate(dict.fromkeys(gpu // size for gpu in gpus))}
    return sorted(gpus, key=lambda gpu: (order[gpu // size], gpu if in_turn else 0))


def _beside(state: Occupancy, own: list[int], count: int, share: int) -> list[int] | None:
    """Other leafs with enough idle servers, one by one that which leaves most free spines in common."""
    if not count:
        return []
    size = state.plant.gpus_per_server
    rows = [leaf for leaf in range(state.plant.units) if state.idle_servers[leaf] * size >= share and leaf not in own]
    if len(rows) < count:
        return None
    reach = (state.cables_free > 0).reshape(state.plant.units, -1)
    shared = reach[own].all(axis=0)
    chosen: list[int] = []
    for _ in range(count):
        left = [leaf for leaf in rows if leaf not in chosen]
        best = left[int(np.argmax((reach[left] & shared).sum(axis=1)))]
        shared = shared & reach[best]
        chosen.append(best)
    return sorted(chosen)


def _emptiest(state: Occupancy, own: dict[int, list[int]]) -> list[int]:
    order = np.argsort(-state.idle_servers, kind="stable").tolist()
    return [leaf for leaf in order if leaf not in own]
