"""From a question to a plan: search by turns, comparison, and the simulation that every number comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from ropewalk.codesign.alternate import Alternation, Candidate, Tell, alternate, exhaust, judged
from ropewalk.codesign.answer import PlanAnswer, route_facts
from ropewalk.codesign.baselines import BASELINES, Baseline, chosen_baselines
from ropewalk.codesign.chains import ENGINES, Setting, search_chains
from ropewalk.codesign.design import Compared, Design
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.exhaustive import every_seating
from ropewalk.codesign.job import Job, job_of, search_on_baseline, search_on_wiring, site_of
from ropewalk.codesign.judge import Judge
from ropewalk.codesign.metropolis import Patience
from ropewalk.codesign.question import PlanQuestion
from ropewalk.codesign.reconfigure import run_on_circuits
from ropewalk.codesign.seats import Places, check_memory
from ropewalk.codesign.small_spaces import best_pairs
from ropewalk.errors import StrategyError
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seat, Seating, coset

Advance = Callable[[int, int | None, str], None]
"""Called with (done, of how many, what is being done)."""
FEW_SEATINGS = 200
"""Spaces up to this size are simulated whole, every strategy on every wiring that is made for one of them."""
MANY_SEATINGS, MANY_PAIRS = 25_000, 1_000_000
"""Spaces up to this size are estimated whole, as long as no more pairs of strategy and wiring could be the best."""
JUDGED = 20
"""Pairs with the best estimates that are simulated."""
GREED, BACK_EVERY = 150.0, 200
"""How chains search here: a strategy that takes a hundredth longer is accepted one time in five, and a chain has at
least so many proposals before it goes back to its best. Groups of layers have to move together, which takes time."""
STARTS = 3
"""So many strategies are gone on from: the common start and the best others."""
LONG_SEARCH = 60_000
"""Proposals of all chains from which on processes of their own are worth starting."""


def plan(
    question: PlanQuestion, *, engine: str = "processes", workers: int | None = None, advance: Advance | None = None
) -> PlanAnswer:
    """The best wiring and strategy found, timed by flow simulation, beside every network it is compared with."""
    planner = Planner(question, engine, workers, advance or (lambda done, total, now: None))
    return planner.run()


@dataclass
class Planner:
    """One plan in the making; times that are known are kept."""

    question: PlanQuestion
    engine: str
    workers: int | None
    advance: Advance
    _pool: dict[Seating, None] = field(default_factory=dict)
    """Strategies that were found so far, wherever that was; in order."""
    _strategies: dict[str, Seating] = field(default_factory=dict)
    """The best of the pool on networks to compare with, by their names."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise StrategyError(f"there is no engine {self.engine!r}: use {' or '.join(ENGINES)}")
        self.baselines, self.notes = chosen_baselines(self.question.compare, site_of(self.question))
        self.advance(0, None, "reading and pricing the model")
        self.job: Job = job_of(self.question)
        self.space = self.job.space
        self.judge = Judge(self.job)

    def run(self) -> PlanAnswer:
        self._search_baselines()
        found = self._searched()
        best = found.best
        self._pool[best.seating] = None
        seating, wiring = best.seating, best.wiring
        self.judge.patches(wiring)  # where nothing could be patched, this says why
        self.advance(0, None, "simulating the plan")
        timed = time_step(self.job.step(seating), self.job.network(seating, wiring))
        if self.judge.by_estimate:
            self.notes.append("The history is of estimates: this step has very many transfers. All else is simulated.")
        compared = self._compared()
        demands = self.job.demands(seating)
        site, servers = self.job.site, self.question.servers
        statistics = timed.statistics
        design = Design(
            question=self.question,
            layers=self.job.layers,
            seating=seating,
            wiring=wiring,
            routes=route_facts(timed.run.trace.routes),
            step_time_s=timed.seconds,
            compute_s=statistics.compute_s,
            exposed_communication_s=statistics.exposed_communication_s,
            estimate_s=self.judge.estimated(seating, timed.network),
            tax=timed.tax,
            allreduce_bytes=demands.sum_wire_bytes,
            mp_bytes=demands.pair_bytes,
            cost=site.plan_cost * servers,
            baselines=compared,
            history=found.history,
            ended=found.ended,
            notes=tuple(self.notes),
        )
        return PlanAnswer(design, timed, demands)

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
        return alternate(
            list(self._pool),
            search=self._search,
            rewire=self.judge.wire,
            time=self.judge.on_wiring,
            rounds=self.question.rounds,
            begin_with=STARTS,
            tell=self._tell("plan"),
        )

    def _all_pairs(self) -> list[Candidate] | None:
        """The fastest pairs of strategy and wiring by estimate, of all there are; None where these are too many."""
        self.advance(0, None, "plan: every strategy on every wiring")
        space, site = self.space, replace(self.job.site, latency=0.0)
        seatings = {space.seating(places): places for places in every_seating(space)}
        switch = BASELINES["ideal-switch"](site).network
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
            self.advance(number, len(names), f"searching a strategy for {name}")
            setting = partial(search_on_baseline, self.question, name)
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
        setting = partial(search_on_wiring, self.question, seating, wiring)
        found = self._chains(setting, number, self.space.places_of(seating), self.question.budget)
        return min([*found, seating], key=lambda one: self.judge.on_wiring(one, wiring))

    def _best_on(self, name: str) -> Seating:
        """The fastest on a network to compare with, of all strategies that were found anywhere.

        Its own search is among them. Taking the others into account keeps luck of one search out of the comparison.
        """
        if name not in self._strategies:
            network = BASELINES[name](self.job.site).network
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
            patience=Patience(budget, GREED, max(BACK_EVERY, budget // 10)),
            start=start,
            engine=self.engine,
            workers=workers,
        )
        return [self.space.seating(places) for places in dict.fromkeys(found.places for found in searched.chains)]

    def _compared(self) -> dict[str, Compared]:
        compared = {}
        for number, baseline in enumerate(self.baselines):
            self.advance(number, len(self.baselines), f"comparing with {baseline.name}")
            compared[baseline.name] = Compared(
                self._seconds_on(baseline), baseline.cost * self.question.servers, baseline.about, baseline.strategy_of
            )
        return compared

    def _seconds_on(self, baseline: Baseline) -> float:
        step = self.job.step(self._best_on(baseline.strategy_of or baseline.name))
        if baseline.circuits is not None:
            return run_on_circuits(step, baseline.circuits).seconds
        assert baseline.network is not None
        return time_step(step, baseline.network).seconds

    def _tell(self, what: str) -> Tell:
        return lambda done, most, now: self.advance(done, most, f"{what}: {now}")
