"""How jobs share the cluster changes while they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ropewalk.errors import ClusterError, InputError
from ropewalk.serve.dispatch import dispatch, why_never
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import ChangePolicy
from ropewalk.serve.outcome import Refused
from ropewalk.serve.settings import Settings
from ropewalk.serve.state import State, opens_links
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.parts import drained_of, part_names
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import OPTICAL_PLANTS
from ropewalk.tenancy.queue import Line
from ropewalk.tenancy.shards.allocate import SHARD
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.words import listed

KINDS: dict[type[Plant], str] = {**dict.fromkeys(OPTICAL_PLANTS, "circuits"), PanelPlant: "patch panels"}
"""What links become under a policy that changes the plant."""


def change(turn: Turn, asked: ChangePolicy) -> dict[str, Any]:
    """New settings, where every running allocation is valid under them; answers what running jobs are guaranteed."""
    state, before = turn.state, turn.state.settings
    given = {name: value for name, value in vars(asked).items() if value is not None}
    try:
        wanted = replace(before, **given)
        wanted.check(state.plant)
    except ClusterError as problem:
        raise Refused("invalid", str(problem)) from None
    occupancy = _on_its_plant(state, wanted)
    put_aside: list[str] = []
    if wanted != before:
        put_aside = _settle(turn, wanted, occupancy)
        turn.tell("policy-changed", before=before.as_document(), after=wanted.as_document())
        dispatch(turn)
    return {"settings": wanted.as_document(), **_promises(state), "put_aside": put_aside}


def _settle(turn: Turn, wanted: Settings, occupancy: Occupancy) -> list[str]:
    """Everything that depends on the settings, made anew; answers the waiting jobs that are held from now on."""
    state = turn.state
    turn.settings = True
    released = state.settings.keep_links and not wanted.keep_links
    state.settings = wanted
    if occupancy is not state.occupancy:
        was, now = state.occupancy.plant, occupancy.plant
        state.drained, state.failed = (_same_parts(was, now, one) for one in (state.drained, state.failed))
        state.occupancy, state.empty = occupancy, Occupancy(now)
    state.possible = {}
    state.tried = None
    state.changes += 1
    if released:
        for job in [one for one in state.jobs.values() if one.releasing]:
            for number, _ in job.releasing:
                state.occupancy.free_links(f"{job.id}/{number}")
            turn.put(job, releasing=())
    state.keep_out()
    state.line = Line(wanted.order)
    waiting = [job for job in state.jobs.values() if job.waits_in_line]
    put_aside = [job.id for job in waiting if _is_put_aside(turn, job)]
    for job in waiting:
        if job.id not in put_aside:
            state.enqueue(job)
    return put_aside


def _is_put_aside(turn: Turn, job: ServedJob) -> bool:
    """A waiting job that can never start under the new policy is held: it must not block everybody else."""
    never = why_never(turn.state, job)
    if never is None:
        return False
    held = turn.put(job, held=True, note=f"it can never start under {turn.state.settings.policy}: {never.explanation}")
    turn.tell("job-held", held, note=held.note)
    return True


def _on_its_plant(state: State, wanted: Settings) -> Occupancy:
    """The occupancy as the new policy needs it: cables become circuits or the like only where none is used."""
    plant = wanted.rule.plant(state.plant)
    if type(plant) is type(state.occupancy.plant):
        return state.occupancy
    if not np.array_equal(plant.leaf_of_gpu, state.occupancy.plant.leaf_of_gpu):
        _check_empty(state, wanted.policy)
    panels = PanelPlant in (type(plant), type(state.occupancy.plant))
    crossing = [job.id for job in state.jobs.values() if (_leaves_server(job) if panels else _crosses_leafs(job))]
    if crossing:
        over = next((said for kind, said in KINDS.items() if isinstance(plant, kind)), "cables")
        one = len(crossing) == 1
        what = f"hold{'s' * one} links, which {wanted.policy} would have to route over"
        if isinstance(plant, PanelPlant):
            what = f"run{'s' * one} on several servers, which {wanted.policy} would have to join by"
        raise Refused(
            "conflict", f"{listed(crossing)} {what} {over}",
            f"wait until {'it has' if one else 'they have'} ended, or end {'it' if one else 'them'}",
            {"jobs": crossing},
        )  # fmt: skip
    occupancy = Occupancy(plant)
    for held in state.occupancy.jobs.values():
        occupancy.place(held)
    _check_parts(state.occupancy.plant, plant, state.drained | state.failed, wanted.policy)
    return occupancy


def _check_empty(state: State, policy: str) -> None:
    """Patch panels join racks, and on rails a rack has several leafs: what is said by leafs would mean others."""
    running = [job.id for job in state.jobs.values() if job.state == "running" or job.releasing]
    out = state.drained | state.failed
    if running or out.leafs or out.links:
        what = f"{listed(running)} run{'s' * (len(running) == 1)}" if running else "leafs or links are out of service"
        raise Refused(
            "conflict", f"{what}, and leafs are different ones under {policy}",
            "wait until jobs have ended, and return leafs and links to service", {"jobs": running},
        )  # fmt: skip


def _crosses_leafs(job: ServedJob) -> bool:
    running = job.state == "running" and job.allocation is not None and len(job.allocation.leafs) > 1
    return running or bool(job.releasing)


def _leaves_server(job: ServedJob) -> bool:
    """Panels join servers themselves, also those below one leaf."""
    return _crosses_leafs(job) or (job.allocation is not None and job.allocation.stage in ("leaf", SHARD))


def _check_parts(was: Plant, plant: Plant, parts: Drained, policy: str) -> None:
    missing = [name for name in part_names(was, parts) if not _exists(plant, name)]
    if missing:
        what = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} out of service"
        does = f"{'does' if len(missing) == 1 else 'do'} not exist"
        raise Refused("conflict", f"{what}, and {does} under {policy}",
                      "restore or repair such parts first", {"parts": missing})  # fmt: skip


def _exists(plant: Plant, part: str) -> bool:
    try:
        drained_of(plant, [part]).check(plant)
    except InputError:
        return False
    return True


def _same_parts(was: Plant, now: Plant, parts: Drained) -> Drained:
    """Parts are known by their names: another plant may count them differently."""
    return drained_of(now, part_names(was, parts))


def _promises(state: State) -> dict[str, Any]:
    """Who shares links with whom from now on."""
    running = [job for job in state.jobs.values() if job.state == "running" and job.allocation]
    sharing = [job.id for job in running if opens_links(job)]
    own = [job.id for job in running if job.allocation and job.allocation.links]
    if state.settings.rule.shares:
        said = "new jobs share every link: isolated jobs may be slowed down from now on"
    elif sharing:
        said = "jobs that share links keep doing so; new jobs get no links on their leafs"
    else:
        said = "every job that crosses leafs has dedicated links"
    return {"sharing_links": sharing, "links_of_their_own": own, "guarantee": said}
