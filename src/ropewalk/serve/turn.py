"""One operation while it is carried out: it collects which jobs change and what happens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ropewalk.serve.job import ServedJob
from ropewalk.serve.outcome import Event, Outcome
from ropewalk.serve.state import State
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.fibres import laid_beside

Links: TypeAlias = tuple[tuple[int, int], ...]
Numbers: TypeAlias = tuple[int, ...]


@dataclass(eq=False)
class Turn:
    """Steps change the state through it, and only after all their checks: a refusal must change nothing."""

    state: State
    now: float
    actor: str = ""
    """Who asks; the owner of jobs that begin in this turn."""
    changed: dict[str, ServedJob] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    parts: bool = False
    settings: bool = False
    freed: bool = False
    """Links were let go of, which degraded jobs may need."""

    def put(self, job: ServedJob, **changes: Any) -> ServedJob:
        """A job with these changes; its version goes up once in a turn."""
        if job.id not in self.changed and (job.id in self.state.jobs or job.id in self.state.ended):
            changes["version"] = job.version + 1
        new = job.changed(changes) if changes else job
        self.changed[new.id] = new
        self.state.keep(new)
        return new

    def note(self, job: ServedJob, **changes: Any) -> ServedJob:
        """A job with something more known about it; nobody has changed it, so its version stays."""
        new = job.changed(changes)
        self.changed[new.id] = new
        self.state.keep(new)
        return new

    def tell(self, kind: str, job: ServedJob | None = None, /, **facts: Any) -> None:
        """An event; those of a job say in a few words which it is. An empty note is left out."""
        if not facts.get("note", True):
            del facts["note"]
        if job is not None:
            facts = _short(job) | facts
        self.events.append(Event(self.now, kind, None if job is None else job.id, facts))

    def start(self, job: ServedJob, found: Allocation) -> ServedJob:
        """Give a waiting job what was found for it."""
        self.state.take(found)
        if job.number in self.state.line:
            self.state.dequeue(job.number)
        started = self.put(
            job, state="running", started_at=self.now, allocation=found, generation=job.generation + 1, again=False
        )
        self.tell("job-started", started)
        return started

    def move(self, job: ServedJob, found: Allocation, **changes: Any) -> ServedJob:
        """Give a running job another allocation; links that it no longer uses are released as those of an ended one."""
        state = self.state
        held = job.allocation
        assert held is not None
        state.occupancy.release(job.id)
        state.occupancy.place(found, on_drained=True)
        left = without(held, found)
        if left.stage == "ocs":
            left = laid_beside(state.occupancy, left)
        releasing = job.releasing
        if state.settings.keep_links and (left.links or left.core_links):
            state.occupancy.keep_links(f"{job.id}/{job.generation}", left)
            releasing = (*releasing, (job.generation, left))
        state.changes += 1
        self.freed = True
        return self.put(
            job, gpus=found.size, allocation=found, generation=job.generation + 1, releasing=releasing, **changes
        )

    def let_go(self, job: ServedJob) -> tuple[tuple[int, Allocation], ...]:
        """Take back what a running job holds; answers what of its links is still being released."""
        state = self.state
        held = job.allocation
        assert held is not None
        keeps = state.settings.keep_links and bool(held.links or held.core_links)
        state.occupancy.release(job.id, links_as=f"{job.id}/{job.generation}" if keeps else None)
        state.changes += 1
        self.freed = True
        return (*job.releasing, (job.generation, held)) if keeps else job.releasing

    def outcome(self, answer: dict[str, Any]) -> Outcome:
        changed = tuple(sorted(self.changed.values(), key=lambda job: job.number))
        return Outcome(answer, changed, tuple(self.events), self.parts, self.settings)


def without(held: Allocation, kept: Allocation) -> Allocation:
    """What of the links of one allocation another one does not use."""
    if held.stage != kept.stage:
        return held
    links, cables = _left(held.links, held.cables, kept.links, kept.cables)
    core_links, core_cables = _left(held.core_links, held.core_cables, kept.core_links, kept.core_cables)
    return replace(held, links=links, cables=cables, core_links=core_links, core_cables=core_cables)


def _left(held: Links, cables: Numbers, kept: Links, kept_cables: Numbers) -> tuple[Links, Numbers]:
    used = set(zip(kept, kept_cables or (0,) * len(kept), strict=True))
    left = [pair for pair in zip(held, cables or (0,) * len(held), strict=True) if pair not in used]
    return tuple(link for link, _ in left), tuple(cable for _, cable in left)


def _short(job: ServedJob) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": job.name, "user": job.user, "gpus": job.gpus, "state": job.state, "version": job.version
    }  # fmt: skip
    if job.outcome is not None:
        facts["outcome"] = job.outcome
    if job.external is not None:
        facts["external"] = job.external
    return facts
