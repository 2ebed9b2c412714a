"""One space of strategies searched: the extensions that are allowed in it, and one number of micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ropewalk.codesign.alternate import INTERRUPTED, Alternation, Candidate, alternate, exhaust, judged
from ropewalk.codesign.baselines import BASELINES, Baseline
from ropewalk.codesign.chains import Setting, search_chains
from ropewalk.codesign.evaluate import fastest_collectives
from ropewalk.codesign.exhaustive import every_seating
from ropewalk.codesign.job import PricedQuestion, job_of, search_on
from ropewalk.codesign.judge import Judge
from ropewalk.codesign.metropolis import SearchPatience
from ropewalk.codesign.network import StepNetwork
from ropewalk.codesign.question import PlanQuestion
from ropewalk.codesign.reconfigure import run_on_circuits
from ropewalk.codesign.seats import Places, check_memory
from ropewalk.codesign.small_spaces import best_pairs
from ropewalk.errors import StrategyError
from ropewalk.fabric.wiring import Wiring
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.progress import Progress
from ropewalk.strategy.seating import Seat, Seating, coset

FEW_SEATINGS = 200
"""Spaces up to this size are simulated whole, every strategy on every wiring that is made for one of them."""
MANY_SEATINGS, MANY_PAIRS = 25_000, 1_000_000
"""Spaces up to this size are estimated whole, as long as no more pairs of strategy and wiring could be the best."""
JUDGED = 20
"""Pairs with the best estimates that are simulated."""
GREED, BACK_EVERY = 150.0, 200
"""How chains search here: a strategy that takes a hundredth longer is accepted one time in five, and a chain has at
least so many proposals before it goes back to its best. Groups of layers have to move together, which takes time."""
BESIDES = 2
"""Chains of every round that go on from the strategy at hand, besides those that begin elsewhere."""
STARTS = 3
"""The search continues from so many strategies: the common start and the best others."""
VERY_MANY_SERVERS, FIRST_WIRED = 512, 4
"""From so many servers on, where a wiring takes seconds to lay and to route, so few strategies are wired before that:
the common start and those that an ideal switch likes best."""
MOST_FROM_SEVERAL = 640
"""Servers up to which the search continues from several strategies; beyond, each would take minutes, and the fastest
of those that were wired is continued from."""
LONG_SEARCH = 60_000
"""Proposals of all chains from which on processes of their own are worth starting."""


@dataclass
class Planner:
    """The search of one space; times that are known are kept."""

    question: PlanQuestion
    """With the extensions of this space alone."""
    micro_batches: int
    baselines: Sequence[Baseline]
    engine: str
    workers: int | None
    progress: Progress
    _pool: dict[Seating, None] = field(default_factory=dict)
    """Strategies that were found so far, wherever that was; in order."""
    _strategies: dict[str, Seating] = field(default_factory=dict)
    """The best of the pool on networks to compare with, by their names."""
    _found: tuple[Seating, ...] = ()
    """The strategy of the plan, once it is found."""

    def __post_init__(self) -> None:
        self.job: PricedQuestion = job_of(self.question, self.micro_batches)
        self.space = self.job.space
        self.judge = Judge(self.job)
        self._said: tuple[int, int | None, str] = 0, None, ""

    def search(self, known: Sequence[Seating] = ()) -> Alternation:
        """The best wiring and strategy of the space; `known` are strategies of smaller spaces to begin with as well."""
        try:
            with unwrapped_interrupts():
                self._search_baselines()
        except KeyboardInterrupt:
            # Nothing is wired yet: the first strategy is, and that is the best so far.
            return replace(self._by_turns([*self._pool][:1], rounds=0), ended=INTERRUPTED)
        self._pool.update(dict.fromkeys(seating for seating in known if self._fits(seating)))
        found = self._searched()
        self._pool[found.best.seating] = None
        self._found = (found.best.seating,)
        return found

    def seconds_on(self, baseline: Baseline) -> float:
        """A step on a network to compare with, with the best strategy for it."""
        seating = self._best_on(baseline.strategy_of or baseline.name)
        if baseline.laid_for is not None:
            # It is laid for a strategy, so the plan's own has its chance as well.
            seatings = dict.fromkeys((seating, *self._found))
            return min(self._seconds(one, baseline.laid_for(self.job.demands(one))) for one in seatings)
        if baseline.circuits is not None:
            return run_on_circuits(self.job.step(seating), baseline.circuits).seconds
        assert baseline.network is not None
        return self._seconds(seating, baseline.network)

    def _seconds(self, seating: Seating, network: StepNetwork) -> float:
        return fastest_collectives(self.job.step(seating), network).seconds

    def _searched(self) -> Alternation:
        if self.space.size <= FEW_SEATINGS:
            seatings = [self.space.seating(places) for places in every_seating(self.space)]
            wirings = list(dict.fromkeys(self.judge.wire(seating) for seating in seatings))
            return exhaust(seatings, wirings, time=self.judge.on_wiring, tell=self._tell("plan"))
        if self.space.size <= MANY_SEATINGS:
            pairs = self._all_pairs()
            if pairs is not None:
                # A space is narrowed down on the first wiring of every strategy; what is left may have others.
                others = [replace(pair, wiring=self.judge.wire(pair.seating)) for pair in pairs]
                return judged([*pairs, *others], time=self.judge.on_wiring)
        return self._by_turns(self._first_wired() if self.is_short else list(self._pool), self.question.rounds)

    def _by_turns(self, starts: Sequence[Seating], rounds: int) -> Alternation:
        return alternate(
            starts,
            search=self._search,
            rewire=self.judge.wire,
            time=self.judge.on_wiring,
            rounds=rounds,
            begin_with=self.starts,
            tell=self._tell("plan"),
        )

    @property
    def is_short(self) -> bool:
        """Is the search shorter than usual, because there are very many servers?"""
        return self.question.servers >= VERY_MANY_SERVERS

    @property
    def starts(self) -> int:
        """Strategies that the search continues from."""
        return STARTS if self.question.servers <= MOST_FROM_SEVERAL else 1

    def _first_wired(self) -> list[Seating]:
        """The common start, and the others that an estimate on an ideal switch likes best."""
        switch = BASELINES["ideal-switch"].make(self.job.site).network
        assert switch is not None
        on_switch = self.job.estimate(switch)
        first, *others = self._pool
        best = sorted(others, key=lambda one: on_switch.place(self.space.places_of(one)))
        return [first, *best[: FIRST_WIRED - 1]]

    def _all_pairs(self) -> list[Candidate] | None:
        """The fastest pairs of strategy and wiring by estimate, of all there are; None where these are too many."""
        self.progress(0, None, "plan: every strategy on every wiring")
        space, site = self.space, replace(self.job.site, latency=0.0)
        seatings = {space.seating(places): places for places in every_seating(space)}
        switch = BASELINES["ideal-switch"].make(site).network
        assert switch is not None
        bound = self.job.estimate(switch)

        def cost_on(wiring: Wiring, made_for: Seating) -> Callable[[Seating], float]:
            on_wiring = self.job.estimate(self.job.network(made_for, wiring))
            return lambda seating: on_wiring.place(seatings[seating])

        return best_pairs(
            list(seatings),
            rewire=self.job.wire,
            cost_on=cost_on,
            bound=lambda seating: bound.place(seatings[seating]),
            keep=JUDGED,
            most=MANY_PAIRS,
        )

    def _search_baselines(self) -> None:
        """Fill the pool: the common start, layers on equally many servers, and what is found on networks of others."""
        start = self.space.seating(self.space.start)
        self._pool[start] = None
        fixed = set(self.space.pinned)
        for degree in (degree for degree in range(1, start.servers) if start.servers % degree == 0):
            alike = Seat(coset(start.servers, degree))
            seats = [seat if at in fixed else alike for at, seat in enumerate(start.seats)]
            uniform = Seating(start.servers, tuple(seats))
            if self._fits(uniform):
                self._pool[uniform] = None
        own = [one.strategy_of or one.name for one in self.baselines]
        names = list(dict.fromkeys(["ideal-switch", *own]))
        for number, name in enumerate(names):
            self._say(number, len(names), f"searching a strategy for {name}")
            setting = partial(search_on, self.question, self.micro_batches, name)
            # It has all the proposals that a plan has in its rounds.
            found = self._chains(setting, 0, self.space.start, self.question.budget * self.question.rounds)
            self._pool.update(dict.fromkeys(found))

    def _fits(self, seating: Seating) -> bool:
        """Is it in the space, and is there memory for it?"""
        try:
            check_memory(self.space, seating)
        except StrategyError:
            return False
        return True

    def _search(self, wiring: Wiring, seating: Seating, number: int) -> Seating:
        setting = partial(search_on, self.question, self.micro_batches, (seating, wiring))
        found = self._chains(setting, number, self.space.places_of(seating), self.question.budget)
        return min([*found, seating], key=lambda one: self.judge.on_wiring(one, wiring))

    def _best_on(self, name: str) -> Seating:
        """The fastest on a network to compare with, of all strategies that were found anywhere.

        Its own search is among them. Taking the others into account keeps luck of one search out of the comparison.
        """
        if name not in self._strategies:
            network = BASELINES[name].make(self.job.site).network
            assert network is not None
            self._strategies[name] = min(self._pool, key=lambda one: self.judge.on_network(one, network))
        return self._strategies[name]

    def _chains(self, setting: Setting, number: int, start: Places, budget: int) -> list[Seating]:
        """What each chain found, none twice; the estimate guided them, who is best is for the judge to say."""
        chains = self.question.chains
        workers = self.workers or (chains if chains * budget >= LONG_SEARCH or self.engine != "processes" else 1)
        searched = search_chains(
            setting,
            chains=chains,
            seed=self.question.seed * 1000 + number,
            patience=SearchPatience(budget, GREED, max(BACK_EVERY, budget // 10)),
            start=start,
            engine=self.engine,
            workers=workers,
            besides=BESIDES if number else 0,
            count=self._count,
        )
        return [self.space.seating(places) for places in dict.fromkeys(found.places for found in searched.chains)]

    def _tell(self, what: str) -> Progress:
        return lambda done, most, now: self._say(done, most, f"{what}: {now}")

    def _say(self, done: int, most: int | None, now: str) -> None:
        """Turns are told in tenths, so that chains of one count too."""
        self._said = done, most, now
        self.progress(10 * done, None if most is None else 10 * most, now)

    def _count(self, done: int, chains: int) -> None:
        turns, most, now = self._said
        self.progress(10 * turns + 10 * done // chains, None if most is None else 10 * most, now)
