"""Answers of the endpoints that read: pure functions of the controller's state and of what was asked."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from ropewalk.documents.numbers import is_count
from ropewalk.errors import ClusterError
from ropewalk.serve import answers, projection
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Submit, from_document
from ropewalk.serve.outcome import Refused
from ropewalk.serve.speed import speed_document
from ropewalk.tenancy.parts import part_names

if TYPE_CHECKING:
    from ropewalk.serve.state import State

STATES = ("pending", "running", "ended", "live")
"""What jobs can be listed by; `live` are those that wait or run."""


def job(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """One job, with what it has reported about its speed."""
    asked.check_query(())
    return job_in_full(state, _job(state, asked))


def job_in_full(state: State, found: ServedJob) -> dict[str, Any]:
    """A job that is known, with what it has reported about its speed."""
    return answers.job_answer(state, found) | {"speed": speed_document(found, history=True)}


def jobs(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """Jobs by number: those that wait and run, and the latest that have ended."""
    asked.check_query(("state", "user", "name", "limit", "after", "full"))
    wanted, user, name, limit = asked.text("state"), asked.text("user"), asked.text("name"), asked.limit()
    if wanted is not None and wanted not in STATES:
        raise ClusterError(f"there is no state {wanted[:40]!r}: use one of {', '.join(STATES)}")
    after = _number_of(asked.text("after"))
    listed = state.jobs.values() if wanted in ("pending", "running", "live") else _all(state)
    found = (
        one
        for one in listed
        if one.number > after
        and (wanted is None or one.state == wanted or (wanted == "live" and one.state != "ended"))
        and (user is None or one.user == user)
        and (name is None or one.name == name)
    )
    page = list(islice(found, limit + 1))
    full = asked.flag("full")
    rows = [_row(state, one, full) for one in page[:limit]]
    return {"jobs": rows, "next": page[limit - 1].id if len(page) > limit else None}


def explained(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """Why a job waits, what is in its way and until when; of one that does not wait, where it is. Uses the state up."""
    asked.check_query(())
    found = _job(state, asked)
    where = found.allocation if found.state == "running" else None
    plant = state.occupancy.plant
    document = projection.explanation(state, found.id)
    if where is not None:
        document["allocation"] = answers.allocation_document(plant, where)
        document["degraded"] = found.degraded
    document["speed"] = speed_document(found)
    return document


def what_if(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """Would such a job start now, and else when? Uses the state up."""
    asked.check_query(())
    if "operation" in asked.body:
        raise ClusterError("operation is not an entry of the body: remove it")
    wanted = from_document({"operation": "submit", "name": "what-if", **asked.body})
    assert isinstance(wanted, Submit)
    return projection.what_if(state, wanted)


def files(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """Files for the launcher of a job that runs."""
    from ropewalk.export.cluster import job_files

    asked.check_query(())
    found = _job(state, asked)
    if found.allocation is None or found.state != "running":
        raise Refused("wrong-state", f"job {found.id} is not running, so it has no nodes", "retry when it runs")
    written = job_files(state.occupancy.plant, found.allocation)
    return {"id": found.id, "name": found.name, "generation": found.generation, "files": written}


def queue(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    asked.check_query(("limit",))
    return answers.queue(state, asked.limit(usual=1000, most=10_000))


def status(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    asked.check_query(())
    return answers.status(state)


def plant(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """The plant by its names."""
    asked.check_query(())
    there = state.plant
    return {
        "name": there.name,
        "gpus": there.gpus,
        "gpus_per_server": there.gpus_per_server,
        "nic_bandwidth": there.nic_bandwidth,
        "link_bandwidth": there.link_bandwidth,
        "server_bandwidth": there.server_bandwidth,
        "servers": [
            {"name": name, "leaf": there.unit_names[unit]}
            for name, unit in zip(there.server_names, there.server_unit.tolist(), strict=True)
        ],
        "leafs": list(there.leaf_names),
        "spines": list(there.spine_names),
        "cables": there.cables.tolist(),
        **({"cores": list(there.core_names), "core_cables": there.core_cables.tolist()} if there.cores else {}),
        **({"rails": there.rails} if there.rails > 1 else {}),
        "drained": list(part_names(state.occupancy.plant, state.drained)),
        "failed": list(part_names(state.occupancy.plant, state.failed)),
    }


def occupancy(state: State, asked: ReceivedRequest) -> dict[str, Any]:
    """Who holds what: GPUs of servers that are not empty, and links that belong to one job."""
    asked.check_query(())
    there, held = state.occupancy.plant, state.occupancy
    size = there.gpus_per_server
    servers: dict[int, dict[str, list[int]]] = {}
    links = []
    for one in state.jobs.values():
        if one.allocation is None or one.state != "running":
            continue
        for gpu in one.allocation.gpus:
            servers.setdefault(gpu // size, {}).setdefault(one.id, []).append(gpu % size)
        for leaf, spine, cable in one.allocation.reserved():
            links.append([there.leaf_names[leaf], there.spine_names[spine], cable, one.id])
    rows = [
        {"name": there.server_names[server], "free": int(held.free_in_server[server]), "jobs": mine}
        for server, mine in sorted(servers.items())
    ]
    return {"plant": there.name, "servers": rows, "links": links}


def _job(state: State, asked: ReceivedRequest) -> ServedJob:
    assert asked.job is not None
    return state.job(asked.job)


def _all(state: State) -> list[ServedJob]:
    return sorted([*state.jobs.values(), *state.ended.values()], key=lambda one: one.number)


def _row(state: State, one: ServedJob, full: bool) -> dict[str, Any]:
    """A job in a list: without its servers and reasons unless asked for, because there may be thousands."""
    if full:
        return answers.job_answer(state, one)
    document = answers.job_document(state.occupancy.plant, one)
    if document["allocation"] is not None:
        document["allocation"] = {name: value for name, value in document["allocation"].items() if name != "servers"}
    return document


def _number_of(text: str | None) -> int:
    if text is None:
        return 0
    number = text.removeprefix("j")
    if not is_count(number):
        raise ClusterError(f"after is {text[:40]!r}: give the id of a job, such as j17")
    return int(number)
