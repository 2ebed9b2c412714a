"""Why a job waits: a reason that programs can act on, with who and what stands in its way."""

from __future__ import annotations

from typing import Any

import numpy as np

from ropewalk.serve.job import ServedJob
from ropewalk.serve.settings import DEFAULT_RUN_S
from ropewalk.serve.state import State, opens_links
from ropewalk.tenancy.allocation import Reason, Waiting
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.parts import part_names

MOST_NAMED = 16
"""Jobs or parts that an answer names one by one; how many there are is said beside."""
REMEDIES = {
    "gpu-shortage": "wait, ask for fewer GPUs, or end jobs that are no longer needed",
    "server-fragmentation": "wait, or request a multiple of the GPUs per server",
    "network-fragmentation": "wait, ask for fewer GPUs so that one leaf holds them, or return links to service",
    "behind-in-queue": "wait, or raise its priority when it is submitted",
    "held": "release it",
}


def explain(state: State, job: ServedJob) -> dict[str, Any]:
    """Why a waiting job waits, as far as it is known without asking anew: this is fast."""
    if job.held:
        return _reason("held", job.note or "it is held", {})
    place = state.line.place(job.number)
    if place == 0 and state.lack is not None:
        return lacking(state, job, state.lack)
    ahead = [f"j{number}" for number in state.line.first(min(place, MOST_NAMED))]
    what = f"{place} job{'s' * (place != 1)} {'is' if place == 1 else 'are'} ahead of it"
    found = _reason("behind-in-queue", what, {"place": place, "ahead": ahead})
    return found | {"remedy": _to_get_past(state, job)}


def _to_get_past(state: State, job: ServedJob) -> str:
    """What may let a job start before those ahead of it: depends on whether, and by what, backfill lets it past."""
    usual = REMEDIES["behind-in-queue"].replace(", or", ",")
    if state.settings.passing is None:
        return f"{usual}, or turn on backfill (ropewalk cluster policy --backfill easy)"
    if job.expected_s is None:
        known = f"backfill assumes {DEFAULT_RUN_S / 3600:g} h"
        return f"{usual}, or submit it with the time it is expected to run: {known}"
    return f"{usual}, or ask for fewer GPUs or less time: backfill starts jobs that fit and delay none ahead"


def lacking(state: State, job: ServedJob, lack: Waiting) -> dict[str, Any]:
    """What the first in line lacks."""
    occupancy, plant = state.occupancy, state.occupancy.plant
    details: dict[str, Any] = {"free_gpus": occupancy.free, "asked_gpus": job.gpus, "ahead": []}
    if lack.reason is Reason.GPU_SHORTAGE:
        details["missing_gpus"] = job.gpus - occupancy.free
        out = state.drained | state.failed
        if out.servers or out.leafs:
            usual = REMEDIES["gpu-shortage"].replace(", or", ",")
            return _reason("gpu-shortage", lack.explanation, details) | {
                "remedy": f"{usual}, or return servers to service"
            }
    if job.servers and lack.reason is Reason.SERVER_FRAGMENTATION:
        remedy = "wait until these servers are free, or submit it again for other servers"
        return _reason("server-fragmentation", lack.explanation, details) | {"remedy": remedy}
    if lack.blocking_spines:
        details["blocking_spines"] = [plant.spine_names[spine] for spine in lack.blocking_spines]
    if lack.tier is not None:
        details["tier"] = lack.tier
    if lack.blocking_cores:
        details["blocking_cores"] = [plant.core_names[core] for core in lack.blocking_cores]
    if lack.nearest_leafs:
        details["nearest"] = {"leafs": [plant.leaf_names[leaf] for leaf in lack.nearest_leafs]}
    return _reason(lack.reason.value, lack.explanation, details)


def in_the_way(state: State, job: ServedJob, lack: Waiting) -> dict[str, Any]:
    """Jobs and parts whose going or coming back would help: looks at every running job."""
    running = [one for one in state.jobs.values() if one.state == "running" and one.allocation is not None]
    out = state.drained | state.failed
    if lack.reason is Reason.NETWORK_FRAGMENTATION and lack.nearest_leafs:
        blocking = [one.id for one in _users_of_links(state, lack)]
        parts = _links_out(state, out, lack)
    elif job.servers:
        wanted = {state.server_number[name] for name in job.servers}
        size = state.plant.gpus_per_server
        blocking = [one.id for one in running if one.allocation and {g // size for g in one.allocation.gpus} & wanted]
        parts = part_names(state.occupancy.plant, Drained(servers=wanted).common(out))
    else:
        blocking = [one.id for one in _soonest(running)]
        parts = part_names(state.occupancy.plant, Drained(out.servers, out.leafs))
    return {
        "blocking": blocking[:MOST_NAMED],
        "blocking_count": len(blocking),
        "out_of_service": list(parts[:MOST_NAMED]),
    }


def _soonest(running: list[ServedJob]) -> list[ServedJob]:
    """Those that should end first, first; those that do not say when, last."""
    return sorted(running, key=lambda job: (job.expected_end is None, job.expected_end or 0.0, job.number))


def _users_of_links(state: State, lack: Waiting) -> list[ServedJob]:
    """Jobs on the links between the nearest leafs and the spines that are missing, also those that have ended."""
    leafs, spines, cores = set(lack.nearest_leafs), set(lack.blocking_spines), set(lack.blocking_cores)
    tiers = state.occupancy.plant.tiers
    pods = set(tiers.pod_of_leaf[list(lack.nearest_leafs)].tolist())
    found = []
    for job in state.jobs.values():
        held = [job.allocation] if job.state == "running" and job.allocation else []
        every = (*held, *(old for _, old in job.releasing))
        links = {link for one in every for link in one.links}
        above = {link for one in every for link in one.core_links}
        shared = opens_links(job) and bool(leafs & set(held[0].leafs))
        over = any(core in cores and int(tiers.pod_of_spine[spine]) in pods for spine, core in above)
        if shared or over or any(leaf in leafs and spine in spines for leaf, spine in links):
            found.append(job)
    return found


def _links_out(state: State, out: Drained, lack: Waiting) -> tuple[str, ...]:
    plant = state.occupancy.plant
    up = out.links_up(plant)
    rows, columns = list(lack.nearest_leafs), list(lack.blocking_spines)
    down = (plant.cables[np.ix_(rows, columns)] > 0) & ~up[np.ix_(rows, columns)]
    links = [(rows[row], columns[column]) for row, column in np.argwhere(down).tolist()]
    pods = set(plant.tiers.pod_of_leaf[rows].tolist())
    dead = np.argwhere((plant.core_cables > 0) & ~out.core_links_up(plant)).tolist() if lack.blocking_cores else []
    missing = set(lack.blocking_cores)
    over = [(spine, core) for spine, core in dead if core in missing and int(plant.tiers.pod_of_spine[spine]) in pods]
    return part_names(plant, Drained(links=links, core_links=over))


def _reason(code: str, message: str, details: dict[str, Any]) -> dict[str, Any]:
    return {"code": code, "message": message, "remedy": REMEDIES[code], "details": details}
