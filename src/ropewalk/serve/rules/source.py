"""Where wanted rules come from, and who is told what has become of them: the controller, through its writer."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.serve.controller import Controller
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Fail, NoteRules, Operation, RulesGone
from ropewalk.serve.outcome import Refused
from ropewalk.serve.rules.changes import JobRules, WantedRules
from ropewalk.serve.rules.driver import Link
from ropewalk.serve.rules.making import rules_of, what_is_over
from ropewalk.serve.rules.rule import Rule, Send
from ropewalk.serve.writer import Writer
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant

ACTOR = "rules"
ANSWER_S = 30.0
"""How long the writer may take; it is busy with commits, never with devices."""
Held = tuple[str, int, Allocation]
Made = dict[tuple[str, int], tuple[Rule, ...]]
"""Rules by job and generation."""


@dataclass(frozen=True)
class _Moment:
    """What one look at the controller saw."""

    plant: Plant
    by_source: bool
    failed: frozenset[tuple[int, int]]
    running: tuple[Held, ...]
    releasing: tuple[Held, ...]


class ControllerSource:
    """The controller of a service; rules of an allocation are made once."""

    def __init__(self, writer: Writer, plant: Plant, addresses: AddressPlan) -> None:
        self._writer, self._plant, self._addresses = writer, plant, addresses
        self._made: Made = {}
        self._by_source = False

    def wanted(self) -> WantedRules:
        """All rules of the committed state, of one moment."""
        moment = self._writer.read(_moment).result(ANSWER_S)
        if moment.plant.spine_names != self._plant.spine_names:
            raise ClusterError(
                f"the policy now runs on {moment.plant.name}, but the drivers support {self._plant.name}: restart the "
                "service with drivers for it"
            )
        if moment.by_source != self._by_source:
            self._by_source, self._made = moment.by_source, {}
        running = tuple(self._made_for(moment, held, self._made) for held in moment.running)
        live = {(one.job, one.generation) for one in running}
        self._made = {which: rules for which, rules in self._made.items() if which in live}
        over = (
            what_is_over(self._plant, job, held, self._addresses, generation)
            for job, generation, held in moment.releasing
        )
        return WantedRules(running, tuple(over))

    def ready(self, job: str, generation: int) -> None:
        """All rules of an allocation are in place."""
        self._submit(NoteRules("rules-ready", "all rules are in place", job, generation))

    def gone(self, job: str, generation: int) -> None:
        """No rule of an allocation that is over is left anywhere."""
        self._submit(RulesGone(job, generation))

    def dead(self, links: Iterable[Link]) -> None:
        """Devices see these links down."""
        parts = tuple(sorted(f"link:{leaf}-{spine}" for leaf, spine in links))
        if parts:
            self._submit(Fail(parts, "its leaf reports it down"))

    def note(self, kind: str, device: str, note: str) -> None:
        """Something happened that people want to know."""
        self._submit(NoteRules(kind, note, device=device))

    def failed_links(self) -> frozenset[Link]:
        """Links that the controller takes for dead already."""
        moment = self._writer.read(_moment).result(ANSWER_S)
        plant = moment.plant
        return frozenset((plant.leaf_names[leaf], plant.spine_names[spine]) for leaf, spine in moment.failed)

    def rules_of_job(self, job: str) -> tuple[dict[str, Any], tuple[Rule, ...]]:
        """Which generation a job has, its state, and its rules while it runs; an unknown one is refused."""

        def look(controller: Controller) -> tuple[dict[str, Any], _Moment]:
            found = controller.state.job(job)
            document = {"id": found.id, "state": found.state, "generation": found.generation}
            return document, _moment(controller, [found])

        document, moment = self._writer.read(look).result(ANSWER_S)
        rules = [self._made_for(moment, held, {}).rules for held in moment.running]
        return document, rules[0] if rules else ()

    def _made_for(self, moment: _Moment, held: Held, made: Made) -> JobRules:
        job, generation, allocation = held
        rules = made.get((job, generation))
        if rules is None:
            rules = rules_of(self._plant, job, allocation, self._addresses, generation, shared=moment.by_source)
        made[job, generation] = rules
        if allocation.stage == "shared" and moment.failed:
            rules = tuple(rule for rule in rules if not self._leads_over(rule, moment.failed))
        return JobRules(job, generation, rules)

    def _leads_over(self, rule: Rule, failed: frozenset[tuple[int, int]]) -> bool:
        """Does a rule send traffic over a link that is down? On shared links ordinary routing knows better."""
        hops = (cable for cable, hop in self._addresses.next_hops.items() if isinstance(rule.body, Send)
                and str(hop) == rule.body.next_hop)  # fmt: skip
        return any((leaf, spine) in failed for leaf, spine, _ in hops)

    def _submit(self, operation: Operation) -> None:
        """Say it; an operation that the controller refuses has been overtaken by another one."""
        answer: Future[Any] = self._writer.submit(operation, actor=ACTOR)
        try:
            answer.result(ANSWER_S)
        except Refused as refusal:
            if refusal.code not in ("wrong-state", "not-found", "conflict"):
                raise


def _moment(controller: Controller, jobs: Iterable[ServedJob] | None = None) -> _Moment:
    """Looked at on the writer's thread, so nothing is computed here; jobs that stay on one leaf need no rules."""
    state = controller.state
    chosen = list(state.jobs.values()) if jobs is None else list(jobs)
    plant, failed = state.occupancy.plant, state.failed
    links = {(int(leaf), int(spine)) for leaf, spine in failed.links}
    links |= {(leaf, int(spine)) for leaf in range(plant.leafs) for spine in failed.spines}
    links |= {(int(leaf), spine) for leaf in failed.leafs for spine in range(plant.spines)}
    return _Moment(
        plant,
        state.settings.rule.routing == "source" and not state.settings.rule.isolates,
        frozenset(links),
        tuple(
            (job.id, job.generation, job.allocation)
            for job in chosen
            if job.state == "running" and job.allocation is not None and len(job.allocation.leafs) > 1
        ),
        tuple((job.id, generation, held) for job in chosen for generation, held in job.releasing),
    )
