"""States of small clusters, random and adversarial, for the searches of vClos and their oracle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ropewalk.arrays import Flags
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant


def random_links(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """Each link free with one probability."""
    return rng.random((leafs, spines)) < rng.uniform(0.3, 0.95)


def crown(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """Every leaf misses exactly one spine, another one each: plenty of links, few spines in common."""
    free = np.ones((leafs, spines), bool)
    free[np.arange(leafs), (np.arange(leafs) + rng.integers(spines)) % spines] = False
    return free


def planted(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """A complete block hidden in a random half."""
    free = rng.random((leafs, spines)) < 0.5
    some = rng.permutation(leafs)[: rng.integers(1, leafs + 1)]
    free[np.ix_(some, rng.permutation(spines)[: rng.integers(1, spines + 1)])] = True
    return free


def nearly(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """A hidden block of which one link is taken."""
    free = planted(rng, leafs, spines)
    free[rng.integers(leafs), rng.integers(spines)] = False
    return free


def blocks(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """Groups of leafs that reach groups of spines, with some links astray."""
    group = rng.integers(0, 3, leafs)[:, None] == rng.integers(0, 3, spines)
    return group ^ (rng.random((leafs, spines)) < 0.1)


def staircase(rng: np.random.Generator, leafs: int, spines: int) -> Flags:
    """Leaf i reaches the spines from some place on: the cheapest leafs share least."""
    first = np.sort(rng.integers(0, spines, leafs))
    return np.arange(spines) >= rng.permutation(first)[:, None]


KINDS: tuple[Callable[[np.random.Generator, int, int], Flags], ...] = (
    random_links,
    crown,
    planted,
    nearly,
    blocks,
    staircase,
)


def state_of(seed: int) -> tuple[Occupancy, int, int]:
    """A state of a kind that the seed chooses, and a shape (leafs, spines) to ask it for."""
    rng = np.random.default_rng(seed)
    leafs, spines, size = int(rng.integers(2, 11)), int(rng.integers(1, 11)), int(rng.integers(1, 4))
    servers = max(1, -(-spines // size))
    cables = np.where(rng.random((leafs, spines)) < 0.15, rng.integers(0, 4, (leafs, spines)), 1)
    plant = Plant(f"state {seed}", size, np.repeat(np.arange(leafs), servers), cables)
    free = KINDS[seed % len(KINDS)](rng, leafs, spines)
    busy = np.flatnonzero(rng.random(plant.servers) < rng.uniform(0, 0.5))
    state = Occupancy(plant)
    links = [(leaf, spine) for leaf, spine in zip(*np.nonzero(~free & (cables > 0)), strict=True)]
    state.drain(Drained(servers=busy.tolist(), links=[(int(leaf), int(spine)) for leaf, spine in links]))
    asked = int(rng.integers(2, leafs + 1, 2).min())
    share = size * int(rng.integers(1, max(1, spines // size) + 1, 2).min())
    return state, asked, share
