"""The best strategy where ports are still to be wired: wirings and strategies by turns, under one bound.

TopoOpt (NSDI 2023) looks for a strategy on a given wiring, then wires anew for what that strategy sends, until neither
gets better. Here every turn is the search that all networks have: strategies of the whole space, priced and bounded on
the wiring, the best of them simulated and refined. Turns begin with regular wirings (a ring, a torus, …) and with
wirings for the strategies that could be the fastest, so the answer is never slower than a regular network of the same
ports.

At best every server sends what all its ports together do, through a switch that never blocks. Strategies that take
longer there than the best wired step, whatever their collectives, are left out of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.regular import regular_wirings
from ropewalk.codesign.wiring_for import step_of, wiring_for
from ropewalk.engines import Engine
from ropewalk.errors import FabricError
from ropewalk.hardware import Cluster, Ports
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.planner.answer import Option, PlannerAnswer
from ropewalk.planner.anywhere import floors_anywhere
from ropewalk.planner.bounds import bound_on_ports
from ropewalk.planner.pricing import Priced
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import FASTER
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.study import Study, answer
from ropewalk.plans import Designed
from ropewalk.progress import Progress, silent
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy
from ropewalk.units import show_seconds

FIRST_STRATEGIES = 4
"""Strategies that ports are wired for before any was simulated, those with the lowest bounds and different degrees."""
CLOSE = 1.2
"""Times the best so far up to which the best strategy on a wiring is refined."""
MOST_TURNS = 8
"""Wirings in a row that are made for the best strategy on the one before."""


def planned(question: PlannerQuestion, progress: Progress | None = None, engine: Engine | None = None) -> PlannerAnswer:
    """The best strategy for a model on a cluster; where its ports are open, on the best wiring that was found."""
    if question.designed is not None or not isinstance(question.cluster.network, Ports):
        return answer(question, progress, engine)
    question.check()
    return _OnPorts(question, progress or silent, engine or Engine()).answer()


def ideal_for(cluster: Cluster) -> Cluster:
    """A switch that never blocks in the place of the wiring: every server sends what all its ports together do.

    >>> from ropewalk.hardware import on_network, read_cluster
    >>> ideal_for(on_network(read_cluster("dgx-h100:4"), "wire")).said
    '4x8 h100, 1 NIC of 3.2 Tbps per server, on switch'
    """
    servers, ports = cluster.equal, cluster.ports
    server = replace(servers, nics=1, nic_bandwidth=ports.degree * servers.nic_bandwidth)
    return replace(cluster, servers=(server,), network="switch", latency_s=0.0)


@dataclass(frozen=True, eq=False)
class _Turn:
    """The best strategy that was found on a wiring."""

    study: Study
    best: Option


@dataclass(eq=False)
class _OnPorts:
    question: PlannerQuestion
    say: Progress
    engine: Engine
    best: _Turn | None = None
    interrupted: bool = False
    tried: int = 0
    refused: FabricError | None = None
    seen: set[Designed] = field(default_factory=set)

    def __post_init__(self) -> None:
        question = self.question
        self.cluster = replace(question.cluster, latency_s=question.cluster.latency_s or 0.0)
        self.ideal = Study(replace(question, cluster=ideal_for(question.cluster)), self.say, engine=self.engine)
        self.ideal.prices.in_step = False
        self.priced = self.ideal.price(self.ideal.wanted)
        self.least: NDArray[np.float64] = floors_anywhere(self.ideal.prices, self.priced, np.inf)

    def answer(self) -> PlannerAnswer:
        """Take turns from every start, then look at the best wiring as at any network."""
        try:
            with unwrapped_interrupts():
                for name, designed in regular_wirings(self.cluster).items():
                    self._turns(name, designed, regular=True)
                for name, designed in self._starts():
                    self._turns(name, designed)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
        if self.best is None:
            assert self.refused is not None
            raise self.refused
        return self._answer(self.best)

    def _starts(self) -> Iterator[tuple[str, Designed]]:
        """Wirings for the strategies with the lowest bounds."""
        for strategy in self._promising():
            try:
                yield f"wired for {strategy.said()}", self._wired_for(strategy)
            except FabricError as problem:  # the next strategy may ask for other cables
                self.refused = self.refused or problem

    def _promising(self) -> Iterator[Strategy]:
        """Of every layout the strategy with the lowest bound, the lowest of all first."""
        bounds, (_, layout) = self.priced.floor_s, self.priced.candidates.layouts
        known: set[int] = set()
        for at in np.argsort(bounds, kind="stable").tolist():
            if not np.isfinite(bounds[at]) or len(known) == FIRST_STRATEGIES:
                return
            if int(layout[at]) not in known:
                known.add(int(layout[at]))
                yield self.priced.strategy(at, self.ideal.workload)

    def _turns(self, name: str, start: Designed, *, regular: bool = False) -> None:
        """Strategies on a wiring, a wiring for the best of them, and so on for as long as that helps."""
        designed = start
        for number in range(MOST_TURNS):
            turn = self._turn(name if number == 0 else f"{name}, rewired", designed, regular and number == 0)
            if turn is None or self.best is not turn:
                return
            try:
                designed = self._wired_for(turn.best.strategy, turn.best)
            except FabricError:
                return

    def _turn(self, name: str, designed: Designed, regular: bool) -> _Turn | None:
        """The best strategy on a wiring, of those that could be faster than the best so far; kept where it is.

        On regular wirings it is always refined, as where people name them; on others where it comes close.
        """
        if designed in self.seen:
            return None
        self.seen.add(designed)
        fastest = np.inf if self.best is None else self.best.best.seconds
        worth = self.least < fastest
        if not (worth & self.priced.fits).any():
            return None
        self.tried += 1
        study = Study(self._on(designed), self._named(name), self.ideal.prices, self.engine)
        below = np.inf if regular else fastest * CLOSE
        outcome = study.search(self.ideal.wanted.only(np.flatnonzero(worth)), others=regular, below=below)
        turn = _Turn(study, outcome.best)
        if self.best is None or turn.best.seconds < self.best.best.seconds * FASTER:
            self.best = turn
        if study.interrupted:
            raise KeyboardInterrupt
        return turn

    def _on(self, designed: Designed) -> PlannerQuestion:
        return replace(self.question, designed=designed)

    def _wired_for(self, strategy: Strategy, option: Option | None = None) -> Designed:
        """The fastest wiring for the step of a strategy, with the collectives that it has."""
        algorithm = "ring" if option is None else option.algorithm
        asked = self.ideal.simulator.asked(strategy, DEFAULT_ORDER if option is None else option.placement, algorithm)
        step = step_of(replace(asked, cluster=self.cluster))

        def seconds(designed: Designed) -> float:
            simulator = Simulator(self._on(designed))
            return simulator.seconds(strategy, asked.order or DEFAULT_ORDER, algorithm)

        return wiring_for(step, self.cluster, seconds)

    def _named(self, name: str) -> Progress:
        best = "" if self.best is None else f" (best so far {show_seconds(self.best.best.seconds)})"
        return lambda done, total, now: self.say(done, total, f"{name}{best}: {now}")

    def _answer(self, best: _Turn) -> PlannerAnswer:
        best.study.say, best.study.interrupted = self._named("the best wiring"), self.interrupted
        found = best.study.answer(best.best)
        bounds = self._bounds(self.priced)
        bound = bound_on_ports(self.priced, bounds, self.least, found.training, self.ideal.prices)
        return replace(found, bound=bound, remarks=(*found.remarks, self._remark()))

    def _bounds(self, priced: Priced) -> NDArray[np.float64]:
        """By candidate: seconds that no wiring falls below with rings; only those that matter are replayed."""
        bounds = priced.floor_s.copy()
        while True:
            lowest = int(np.nanargmin(bounds))
            higher = float(priced.replay(np.array([lowest], np.int64))[0])
            if higher <= bounds[lowest]:
                return bounds
            bounds[lowest] = higher

    def _remark(self) -> str:
        return f"{self.tried} wirings were searched, each with all strategies that could be faster there."
