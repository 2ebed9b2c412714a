"""Several chains of the search side by side: in processes of this machine, or on a Ray cluster.

A chain's result depends on its number and seed alone, so it does not matter how many processes there are, or where they
run. Chain 0 begins where it is told to, or at the first start of the space; the others at its further starts, and when
these are used up at random. Besides them, chains may go on from where chain 0 begins, each with proposals of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ropewalk.codesign.metropolis import Cost, Evaluator, FoundSeating, SearchPatience, search, wandered
from ropewalk.codesign.seats import Places, SeatSpace
from ropewalk.engines import engine_named
from ropewalk.errors import StrategyError
from ropewalk.progress import Count

Setting = Callable[[], tuple[SeatSpace, Cost | Evaluator]]
"""Makes the space and the cost of a chain where the chain runs. It must be importable there: a function of a module, or
a `functools.partial` of one, with arguments that can be pickled."""


@dataclass(frozen=True)
class Chain:
    """Everything that a chain's result depends on."""

    number: int
    seed: int
    patience: SearchPatience
    start: Places | None
    """Where it begins; by its number unless given."""


@dataclass(frozen=True)
class SearchedChains:
    """What all chains found."""

    chains: tuple[FoundSeating, ...]

    @property
    def best(self) -> FoundSeating:
        """The shortest step; ties go to the first chain."""
        return min(self.chains, key=lambda found: found.seconds)


def search_chains(
    setting: Setting,
    *,
    chains: int,
    seed: int,
    patience: SearchPatience | None = None,
    start: Places | None = None,
    engine: str = "processes",
    workers: int | None = None,
    besides: int = 0,
    count: Count | None = None,
) -> SearchedChains:
    """Run chains, and so many `besides` that all begin at `start`; `count` hears of those that are done.

    `workers` says how many run at a time (processes, or Ray tasks), one for each chain unless given.
    """
    if chains < 1:
        raise StrategyError(f"{chains} chains cannot search: give 1 or more")
    seeds = np.random.SeedSequence(seed).generate_state(chains + besides, np.uint64).tolist()
    wanted = [
        Chain(number, int(own), patience or SearchPatience(), start if number == 0 or number >= chains else None)
        for number, own in enumerate(seeds)
    ]
    found = engine_named(engine, min(workers or chains, chains)).map(partial(run_chain, setting), wanted, count)
    return SearchedChains(tuple(found))


def run_chain(setting: Setting, chain: Chain) -> FoundSeating:
    """One chain from beginning to end, wherever it runs."""
    space, cost = setting()
    return search(space, cost, seed=chain.seed, start=_start_of(space, chain), patience=chain.patience)


def _start_of(space: SeatSpace, chain: Chain) -> Places:
    if chain.start is not None:
        return chain.start
    return space.starts[chain.number] if chain.number < len(space.starts) else wandered(space, chain.seed)
