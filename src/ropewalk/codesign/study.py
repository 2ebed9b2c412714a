"""From a question to a plan: spaces searched from the smallest on, comparison, and the simulation of the best.

Every extension that is allowed doubles the spaces: without it, and with it. All of them are searched, each begins with
the best strategies of those it contains, and the best of all is the answer. So an extension never makes a plan slower.
Where pipelines are allowed, a space is searched with 1, 2, 4, … micro-batches for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from ropewalk import units
from ropewalk.codesign.alternate import INTERRUPTED, Alternation
from ropewalk.codesign.answer import PlanAnswer, route_facts
from ropewalk.codesign.baselines import chosen_baselines
from ropewalk.codesign.design import Design, TimedBaseline
from ropewalk.codesign.evaluate import fastest_collectives, time_step
from ropewalk.codesign.job import job_of, site_of
from ropewalk.codesign.planner import FIRST_WIRED, Planner
from ropewalk.codesign.question import PlanQuestion
from ropewalk.codesign.remedies import with_remedies
from ropewalk.codesign.seats import SeatSpace
from ropewalk.engines import engine_named
from ropewalk.errors import MemoryShortage
from ropewalk.progress import Progress, counting, silent
from ropewalk.routing.listed import listed, router_listed

SEATS = ("tensor", "expert")
"""Extensions that give layers further seats."""


def answer(
    question: PlanQuestion, progress: Progress | None = None, *, engine: str = "processes", workers: int | None = None
) -> PlanAnswer:
    """The best wiring and strategy found, timed by flow simulation, beside every network it is compared with."""
    engine_named(engine)  # one that is not there is refused before anything is searched
    return _Study(question, engine, workers, progress or silent).run()


@dataclass(frozen=True, eq=False)
class _Searched:
    """A space that was searched."""

    planner: Planner
    found: Alternation

    @property
    def seconds(self) -> float:
        return self.found.best.seconds

    @property
    def name(self) -> str:
        """What sets it apart from the published space."""
        parts = self.planner.micro_batches
        words = [*self.planner.question.allow, *([f"{parts} micro-batches"] if parts > 1 else [])]
        return f"with {', '.join(words)}" if words else "the published space"


@dataclass
class _Study:
    """All spaces of a question."""

    question: PlanQuestion
    engine: str
    workers: int | None
    progress: Progress
    searched: list[_Searched] = field(default_factory=list)

    def run(self) -> PlanAnswer:
        self.baselines, self.notes = chosen_baselines(self.question.compare, site_of(self.question))
        self.progress(0, None, "reading and pricing the model")
        for allowed in self._spaces():
            self._search(allowed)
            if self.interrupted:
                break
        # Ties go to the first, the smaller space.
        return self._answer(min(self.searched, key=lambda one: one.seconds))

    @property
    def interrupted(self) -> bool:
        return any(one.found.interrupted for one in self.searched)

    def _spaces(self) -> Iterator[tuple[str, ...]]:
        """Extensions of every space that differs from those before it, contained ones first; those that fit."""
        seats = [name for name in SEATS if name in self.question.allow]
        known: list[SeatSpace] = []
        shortage: MemoryShortage | None = None
        for count in range(len(seats) + 1):
            for allowed in combinations(seats, count):
                try:
                    space = job_of(replace(self.question, allow=allowed)).space
                except MemoryShortage as problem:
                    shortage = min(problem, shortage or problem, key=lambda one: one.needed_bytes)
                    continue
                if all((space.seats, space.options) != (one.seats, one.options) for one in known):
                    known.append(space)
                    yield allowed
        if not known and shortage is not None:
            raise with_remedies(self.question, shortage)

    def _search(self, allowed: tuple[str, ...]) -> None:
        """Search one space with 1, 2, 4, … micro-batches until that no longer helps."""
        best = float("inf")
        parts = 1
        while (planner := self._planner(allowed, parts)) is not None:
            begin_with = [one for one in self.searched if set(one.planner.question.allow) <= set(allowed)]
            found = planner.search([one.found.best.seating for one in begin_with])
            self.searched.append(_Searched(planner, found))
            if "pipeline" not in self.question.allow or found.best.seconds >= best or found.interrupted:
                return
            best, parts = found.best.seconds, 2 * parts

    def _planner(self, allowed: tuple[str, ...], parts: int) -> Planner | None:
        """The search of a space; None where the batch does not fall into so many parts, or they have no room."""
        question = replace(self.question, allow=allowed)
        if parts > 1 and job_of(question).pricer.batch % parts:
            return None
        words = "".join(f"{name}, " for name in allowed) + (f"{parts} micro-batches, " if parts > 1 else "")

        def progress(done: int, total: int | None, now: str) -> None:
            self.progress(done, total, words + now)

        try:
            return Planner(question, parts, self.baselines, self.engine, self.workers, progress)
        except MemoryShortage:
            return None

    def _answer(self, best: _Searched) -> PlanAnswer:
        planner, found = best.planner, best.found
        seating, wiring = found.best.seating, found.best.wiring
        planner.judge.patches(wiring)  # where nothing could be patched, this says why
        self.progress(0, None, "simulating the plan")
        step = planner.job.step(seating)
        seen = counting(self.progress, "simulating the plan: tasks done")
        rings = time_step(step, planner.job.network(seating, wiring), seen)
        # Whatever sums run, all that servers relay takes the routes that rings were simulated on.
        paths = listed(rings.run.trace.routes)
        network = replace(rings.network, router=router_listed(paths))
        chosen = fastest_collectives(step, network, rings.seconds)
        timed = rings if chosen.seconds >= rings.seconds else time_step(step, network, collectives=chosen.choice)
        demands = planner.job.demands(seating)
        statistics = timed.statistics
        design = Design(
            question=self.question,
            layers=planner.job.layers,
            seating=seating,
            micro_batches=planner.micro_batches,
            wiring=wiring,
            routes=route_facts(rings.run.trace.routes),
            step_time_s=timed.seconds,
            expected=planner.job.expected(timed.seconds, seating),
            compute_s=statistics.compute_s,
            exposed_communication_s=statistics.exposed_communication_s,
            estimate_s=planner.judge.estimated(seating, rings.network),
            tax=timed.tax,
            allreduce_bytes=demands.sum_wire_bytes,
            mp_bytes=demands.pair_bytes,
            cost=planner.job.site.plan_cost * self.question.servers,
            baselines={} if self.interrupted else self._compared(),
            history=found.history,
            ended=INTERRUPTED if self.interrupted else found.ended,
            collectives="ring" if timed is rings else str(chosen.choice),
            notes=(*self.notes, *self._further_notes(best)),
            cost_source=planner.job.cost_source,
        )
        return PlanAnswer(design, timed, demands, paths)

    def _further_notes(self, best: _Searched) -> Iterator[str]:
        if self.interrupted:
            yield (
                "Interrupted: this is the best so far, compared with no other network. Rerunning it gives a "
                "different result."
            )
        if best.planner.judge.by_estimate:
            yield (
                "The search history shows estimates, as this step has very many transfers. Everything else is "
                "simulated."
            )
        if best.planner.is_short:
            yield (
                f"{self.question.servers:,} servers are many: {FIRST_WIRED} strategies were wired instead of all, "
                f"and the search continued from {best.planner.starts} of them. --budget and --rounds lengthen it."
            )
        if len(self.searched) > 1:
            times = [f"{one.name} {units.show_seconds(one.seconds)}" for one in self.searched]
            yield f"Spaces of strategies, each at its best: {'; '.join(times)}."

    def _compared(self) -> dict[str, TimedBaseline]:
        """Every network to compare with, with the best strategy of all spaces."""
        compared = {}
        for number, baseline in enumerate(self.baselines):
            self.progress(number, len(self.baselines), f"comparing with {baseline.name}")
            seconds = min(one.planner.seconds_on(baseline) for one in self.searched)
            cost = baseline.cost * self.question.servers
            compared[baseline.name] = TimedBaseline(seconds, cost, baseline.about, baseline.strategy_of)
        return compared
