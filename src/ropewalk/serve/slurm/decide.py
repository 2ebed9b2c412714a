"""Compares what Slurm says of its jobs with what the controller thinks, and says what to do: no I/O, no clock.

Slurm is the truth about what runs. A job of the controller and one of Slurm are the same if the number it was bound
to is, or the token in the comment. Steps come in an order in which each may rely on those before it: servers that
ended jobs free are free when another job that runs there is adopted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ropewalk.serve.slurm.mark import Mark
from ropewalk.serve.slurm.queue import SlurmJob
from ropewalk.serve.slurm.request import JobRequest, NotOurs, of_job
from ropewalk.serve.slurm.seen import Ours, Patience, Seen
from ropewalk.serve.slurm.steps import (
    Attach,
    CancelInSlurm,
    Enrol,
    Finish,
    HoldInSlurm,
    LetGo,
    Outcome,
    PutBack,
    Remark,
    Start,
    Step,
    Take,
)

ORDER = (Finish, Attach, CancelInSlurm, HoldInSlurm, PutBack, Take, Remark, LetGo, Start, Enrol)
TASKS_AT_ONCE = 8
"""Tasks of one job array that wait in the controller's queue at a time."""


@dataclass
class _Round:
    seen: Seen
    partitions: Collection[str]
    patience: Patience
    steps: list[Step] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    displaced: set[str] = field(default_factory=set)

    def add(self, *steps: Step) -> None:
        self.steps.extend(steps)

    def finish(self, job: Ours, outcome: Outcome, why: str) -> None:
        self.ended.add(job.id)
        self.add(Finish(job.id, outcome, why))

    def in_order(self) -> tuple[Step, ...]:
        kept = (step for step in self.steps if not self._overtaken(step))
        return tuple(sorted(kept, key=lambda step: ORDER.index(type(step))))

    def _overtaken(self, step: Step) -> bool:
        """A job that ends in this round is not bound any more; one that loses its servers is not started on them."""
        if isinstance(step, Attach):
            return step.job in self.ended
        return isinstance(step, Start | PutBack) and step.job in self.displaced


def decide(seen: Seen, partitions: Collection[str] = (), patience: Patience | None = None) -> tuple[Step, ...]:
    """The steps of one round, in the order in which they are taken."""
    this = _Round(seen, partitions, patience or Patience())
    pairs = dict(_pairs(seen))
    for slurm in seen.slurm:
        PHASES[slurm.phase](this, slurm, pairs.get(slurm.id))
    _without_slurm(this, {job.id for job in pairs.values()})
    _take_running(this, pairs)
    return this.in_order()


def missing(seen: Seen) -> frozenset[str]:
    """Jobs of the controller that are bound to a number Slurm does not list; the next round wants to know."""
    matched = {job.id for _, job in _pairs(seen)}
    return frozenset(job.id for job in seen.ours if job.slurms and job.external and job.id not in matched)


def _pairs(seen: Seen) -> Iterator[tuple[int, Ours]]:
    """(number in Slurm, job of the controller) of all that are the same.

    Slurm counts from 1 again when it loses its state, so an equal number with another token is another job.
    """
    numbered = {job.external: job for job in seen.ours if job.external}
    by_token = {job.token: job for job in seen.ours if job.token and not job.external}
    for slurm in seen.slurm:
        job = numbered.get(slurm.external)
        if job is not None and slurm.mark.token in ("", job.token):
            yield slurm.id, job
        elif slurm.mark.token in by_token and by_token[slurm.mark.token].user == slurm.user:
            yield slurm.id, by_token.pop(slurm.mark.token)


def _finished(this: _Round, slurm: SlurmJob, job: Ours | None) -> None:
    if job is not None and slurm.ending is not None:
        this.finish(job, slurm.ending, "reported by Slurm")


def _active(this: _Round, slurm: SlurmJob, job: Ours | None) -> None:
    if job is None:
        if _was_cancelled(this, slurm):
            this.add(CancelInSlurm(slurm))
        return
    known = set(_known(this, slurm))
    if job.state == "running" and slurm.completing and known <= set(job.servers):
        return
    if job.state == "pending" or set(job.servers) != known:
        this.finish(job, "lost", "Slurm runs it on servers other than its own")
        return
    if not job.external:
        this.add(Attach(job.id, slurm))
    # A job that is held while it runs is held again if Slurm queues it again: the word stays in its mark.
    wanted = Mark(job.token, job.servers, slurm.mark.hold and slurm.held)
    if slurm.mark != wanted:
        this.add(Remark(slurm, wanted))


def _pending(this: _Round, slurm: SlurmJob, job: Ours | None) -> None:
    if job is None:
        _waits_unknown(this, slurm)
        return
    if not job.external:
        this.add(Attach(job.id, slurm))
    if job.state == "pending" and not slurm.held:
        this.finish(job, "lost", "it was released in Slurm")
        this.add(Remark(slurm, Mark(left=True, note="not placed by ropewalk: it was released")))
    elif slurm.held and not slurm.mark.hold:
        this.finish(job, "lost", "its user holds it")
        this.add(Remark(slurm, Mark(note="not placed by ropewalk: its user holds it")))
    elif job.state == "running" and slurm.mark.hold:
        this.add(Start(job.id, slurm, replace(slurm.mark, nodes=job.servers)))
    elif job.state == "running" and this.seen.now - job.since > this.patience.start_s:
        this.add(_held_again(slurm), PutBack(job.id, "Slurm did not start it on its servers"))


PHASES = {"finished": _finished, "active": _active, "pending": _pending}


def _waits_unknown(this: _Round, slurm: SlurmJob) -> None:
    """A pending job that the controller does not know: it is asked, as soon as the job could start."""
    if _was_cancelled(this, slurm):
        this.add(CancelInSlurm(slurm))
        return
    if slurm.mark.left:
        return
    request = of_job(slurm, this.partitions, this.seen.now)
    if isinstance(request, NotOurs) and slurm.mark.hold:
        this.add(LetGo(slurm, request.why))
    if not isinstance(request, JobRequest):
        return
    if not slurm.array_tasks:
        this.add(Enrol(slurm, request))
        return
    split_off = sum(job.state == "pending" and job.array == slurm.array for job in this.seen.ours)
    this.add(*(Enrol(slurm, request, task) for task in slurm.array_tasks[: max(0, TASKS_AT_ONCE - split_off)]))


def _without_slurm(this: _Round, matched: set[str]) -> None:
    """Jobs that came from Slurm and are not in its list: a bound one is missed twice before it is given up."""
    for job in this.seen.ours:
        if not job.slurms or job.id in matched:
            continue
        if job.external:
            if job.id in this.seen.missing_before:
                this.finish(job, "lost", "Slurm no longer knows it")
        elif this.seen.now - job.since > this.patience.unbound_s:
            this.finish(job, "lost", "Slurm never created the job")


def _take_running(this: _Round, pairs: Mapping[int, Ours]) -> None:
    """Adopt what runs unknown; whoever was given its servers and does not run there waits again."""
    waiting = {pairs[one.id].id: one for one in this.seen.slurm if one.phase == "pending" and one.id in pairs}
    holders = {
        server: job.id
        for job in this.seen.ours
        if job.state == "running" and job.id not in this.ended
        for server in job.servers
    }
    for slurm in this.seen.slurm:
        known = _known(this, slurm)
        same = pairs.get(slurm.id)
        managed = same is not None and same.id not in this.ended
        if slurm.phase != "active" or slurm.completing or not known or managed or _was_cancelled(this, slurm):
            continue
        in_the_way = sorted({holders[server] for server in known if server in holders} - this.displaced)
        if in_the_way and not waiting.keys() >= set(in_the_way):
            note = Mark(note=f"not isolated: its servers belong to {', '.join(in_the_way)}")
            this.add(*([Remark(slurm, note)] if slurm.mark != note else []))
            continue
        this.displaced.update(in_the_way)
        this.add(*(_held_again(waiting[job]) for job in in_the_way), Take(slurm, known, tuple(in_the_way)))


def _held_again(slurm: SlurmJob) -> HoldInSlurm:
    return HoldInSlurm(slurm, Mark(slurm.mark.token, hold=True))


def _known(this: _Round, slurm: SlurmJob) -> tuple[str, ...]:
    """Its servers in the plant; a job may also run on nodes that ropewalk knows nothing of."""
    return tuple(node for node in slurm.nodes if node in this.seen.servers)


def _was_cancelled(this: _Round, slurm: SlurmJob) -> bool:
    return bool(slurm.mark.token) and slurm.mark.token in this.seen.cancelled
