"""Parts go out of service and come back: drained by people, or failed, with what becomes of the jobs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropewalk.errors import InputError
from ropewalk.serve.dispatch import dispatch
from ropewalk.serve.healing import heal, other_links
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Drain, Fail, Repair, Restore
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import opens_links
from ropewalk.serve.steps.lifecycle import finish
from ropewalk.serve.steps.requeue import put_back
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import loses_gpus, loses_links
from ropewalk.tenancy.parts import drained_of, part_names
from ropewalk.tenancy.pinned import on_what_is_left, over_shared_links
from ropewalk.tenancy.plant import Plant


def drain(turn: Turn, asked: Drain) -> dict[str, Any]:
    """Parts take no new jobs; answers which running jobs are still on them."""
    parts = _named(turn, asked.parts)
    state, plant = turn.state, turn.state.occupancy.plant
    new = parts.besides(state.drained)
    affected = [job.id for job in _running(turn) if job.allocation and parts.touches(plant, job.allocation)]
    if new:
        state.drained |= new
        _tell_parts(turn, "parts-drained", new, asked.note)
        dispatch(turn)
    return _answer(turn, parts, affected)


def restore(turn: Turn, asked: Restore) -> dict[str, Any]:
    """Drained parts take jobs again, and jobs that had lost links get some; what has also failed stays out."""
    parts = _named(turn, asked.parts)
    state = turn.state
    back = parts.common(state.drained)
    if back:
        state.drained -= back
        _tell_parts(turn, "parts-restored", back, asked.note)
    return _answer(turn, parts, _healed(turn) if back else [])


def fail(turn: Turn, asked: Fail) -> dict[str, Any]:
    """Parts are down; answers what becomes of every job that used them."""
    parts = _named(turn, asked.parts)
    state = turn.state
    new = parts.besides(state.failed)
    became: dict[str, str] = {}
    if new:
        state.failed |= new
        _tell_parts(turn, "parts-failed", new, asked.note)
        plant = state.occupancy.plant
        # Who has lost GPUs goes first, so that others may get the links this frees.
        for job in sorted(_running(turn), key=lambda one: not _is_hit(one, plant, new)):
            what = _survive(turn, job, new)
            if what is not None:
                became[job.id] = what
        state.keep_out()
        dispatch(turn)
        became |= {job: "rerouted" for job, what in became.items() if what == "degraded" and job not in state.degraded}
    return _answer(turn, parts, list(became)) | {"became": became}


def repair(turn: Turn, asked: Repair) -> dict[str, Any]:
    """Failed parts work again; jobs that had lost links get dedicated links back where there are any."""
    parts = _named(turn, asked.parts)
    state = turn.state
    back = parts.common(state.failed)
    if back:
        state.failed -= back
        _tell_parts(turn, "parts-repaired", back, asked.note)
    return _answer(turn, parts, _healed(turn) if back else [])


def _healed(turn: Turn) -> list[str]:
    """Parts have come back: who has dedicated links again; then whoever may start does."""
    before = sorted(turn.state.degraded, key=lambda job: turn.state.jobs[job].number)
    heal(turn)
    dispatch(turn)
    return [job for job in before if job not in turn.state.degraded]


def _named(turn: Turn, names: Sequence[str]) -> Drained:
    plant = turn.state.occupancy.plant
    try:
        parts = drained_of(plant, names)
        parts.check(plant)
    except InputError as problem:
        raise Refused("not-found", str(problem), "", {"parts": list(names)}) from None
    return parts


def _running(turn: Turn) -> list[ServedJob]:
    return [job for job in turn.state.jobs.values() if job.state == "running"]


def _tell_parts(turn: Turn, kind: str, parts: Drained, note: str) -> None:
    """Write it down and tell the occupancy."""
    turn.parts = True
    turn.state.keep_out()
    names = list(part_names(turn.state.occupancy.plant, parts))
    turn.tell(kind, parts=names, note=note)


def _answer(turn: Turn, parts: Drained, affected: list[str]) -> dict[str, Any]:
    state, plant = turn.state, turn.state.occupancy.plant
    return {
        "parts": list(part_names(plant, parts)),
        "drained": list(part_names(plant, state.drained)),
        "failed": list(part_names(plant, state.failed)),
        "affected": affected,
    }


def _is_hit(job: ServedJob, plant: Plant, lost: Drained) -> bool:
    return job.allocation is not None and loses_gpus(lost, plant, job.allocation)


def _survive(turn: Turn, job: ServedJob, lost: Drained) -> str | None:
    """What becomes of a job that may have lost something; None where it has not."""
    state, plant, held = turn.state, turn.state.occupancy.plant, job.allocation
    assert held is not None
    if _is_hit(job, plant, lost):
        return _stop(turn, job, "it has lost GPUs")
    if opens_links(job):
        return _reroute_shared(turn, job, held) if lost.touches(plant, held) else None
    if not loses_links(lost, plant, held):
        return None
    found = other_links(turn, job, held)
    if found is not None:
        turn.tell("job-rerouted", turn.move(job, found, degraded=False))
        return "rerouted"
    if job.requeue or held.has_circuits:
        return _stop(turn, job, "it has lost links, and no others are free")
    left = on_what_is_left(state.occupancy, held) or over_shared_links(state.occupancy, job.id, held.gpus)
    degraded = turn.move(job, left, degraded=True)
    meets = "its own ranks" if left.links else "other jobs"
    turn.tell(
        "job-degraded", degraded, note=f"{len(left.links)} dedicated links are left: it may share links with {meets}"
    )
    state.keep_out()
    return "degraded"


def _stop(turn: Turn, job: ServedJob, why: str) -> str:
    if job.requeue:
        put_back(turn, job, why)
        return "requeued"
    finish(turn, job, "failed", why)
    return "failed"


def _reroute_shared(turn: Turn, job: ServedJob, held: Allocation) -> str | None:
    """A job on shared links whose static spines have changed sends over others."""
    found = over_shared_links(turn.state.occupancy, job.id, held.gpus)
    if found == held:
        return None
    turn.tell("job-rerouted", turn.move(job, found))
    return "rerouted"
