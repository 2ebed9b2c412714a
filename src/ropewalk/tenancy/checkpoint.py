"""A replay on disk: everything that the events so far have left behind, so that a killed replay goes on byte for byte.

The file is JSON, written whole or not at all. Numbers keep every bit; links of running jobs are kept as they were
chosen, because some routings choose by what was running then.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.files import write_whole
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.rates import Pace
from ropewalk.tenancy.record import Blocked, JobRecord, Refusal, Stretch
from ropewalk.tenancy.running import Past, Running
from ropewalk.tenancy.simulation import Rules, Simulation
from ropewalk.tenancy.waits import Wait, Waits

VERSION = 2
_COLUMNS = ("exchange", "floor_s", "flow_s", "nic_flows", "rounds", "flow_start", "up", "down")


def fingerprint(plant: Plant, jobs: Sequence[Job], policy: str, rules: Rules, failures: Sequence[Failure]) -> str:
    """What a replay was asked, in a few letters: it may only be continued for the same question."""
    digest = hashlib.sha256()
    optical = (plant.spine_fibres, np.float64(plant.reconfiguration_s)) if isinstance(plant, OpticalPlant) else ()
    for array in (plant.server_leaf, plant.cables, *optical):
        digest.update(np.ascontiguousarray(array).tobytes())
    speeds = (plant.gpus_per_server, plant.nic_bandwidth, plant.link_bandwidth, plant.server_bandwidth)
    digest.update(repr((VERSION, speeds, policy, rules, [_failure(one) for one in failures])).encode())
    for job in jobs:
        digest.update(repr(job).encode())
    return digest.hexdigest()


def _failure(failure: Failure) -> tuple[Any, ...]:
    return failure.at_s, failure.until_s, failure.drain, sorted(failure.parts.as_document().items())


def write(path: str | Path, simulation: Simulation, question: str) -> None:
    """Write down where a replay stands, between two events."""
    content = {
        "version": VERSION,
        "question": question,
        "now_s": simulation.now_s,
        "arrived": simulation.arrived,
        "changed": simulation.changed,
        "events": simulation.events,
        "state": simulation.state.as_document(),
        "dead": simulation.dead.as_document(),
        "tried": simulation.last_try(),
        "line": [[number, simulation.line.was_thrown_out(number)] for number in simulation.line],
        "running": [_run(simulation, run) for run in simulation.running.values()],
        "waits": [[number, asdict(wait)] for number, wait in simulation.waits.of.items()],
        "blocked": [[one.job, one.at_s, one.reason] for one in simulation.waits.blocked],
        "blocked_head": simulation.waits.head,
        "pasts": [[number, _past(past)] for number, past in simulation.pasts.items()],
        "records": [[number, _record(record)] for number, record in simulation.records.items()],
        "refused": [[number, asdict(refusal)] for number, refusal in simulation.refused.items()],
        "curve": asdict(simulation.curve),
    }
    write_whole(path, json.dumps(content))


def resume(path: str | Path, simulation: Simulation, question: str) -> None:
    """Bring a fresh simulation to where the file says it was."""
    document = _read(path)
    if document.get("question") != question:
        raise ClusterError(
            f"{path} is the replay of other jobs, another cluster or other rules: give the same ones, or start anew "
            "without resuming"
        )
    try:
        _restore(simulation, document)
    except (KeyError, TypeError, ValueError) as problem:
        raise ClusterError(f"{path} cannot be read ({problem!r}): start anew without resuming") from problem


def _read(path: str | Path) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise ClusterError(f"{path} does not exist: start without resuming, it is written as the replay goes") from None
    except (OSError, ValueError) as problem:
        raise ClusterError(f"{path} cannot be read ({problem}): start anew without resuming") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ClusterError(f"{path} is no replay of this version of ropewalk: start anew without resuming")
    return document


def _restore(simulation: Simulation, document: dict[str, Any]) -> None:
    simulation.now_s = document["now_s"]
    simulation.arrived, simulation.changed = document["arrived"], document["changed"]
    simulation.events = document["events"]
    simulation.state = type(simulation.state).from_document(simulation.plant, document["state"])
    simulation.bury(Drained.from_document(document["dead"]))
    for number, thrown_out in document["line"]:
        simulation.stand_in_line(number, again=thrown_out)
    simulation.waits = Waits(
        {number: Wait(**wait) for number, wait in document["waits"]},
        [Blocked(*one) for one in document["blocked"]],
        document["blocked_head"],
    )
    simulation.pasts = {number: _past_of(past) for number, past in document["pasts"]}
    simulation.refused = {number: Refusal(**refusal) for number, refusal in document["refused"]}
    simulation.curve = type(simulation.curve)(**document["curve"])
    simulation.records = {number: _record_of(record) for number, record in document["records"]}
    for entry in document["running"]:
        _restore_run(simulation, entry)
    if document["tried"] is not None:
        simulation.remember_try(*document["tried"])


def _run(simulation: Simulation, run: Running) -> dict[str, Any]:
    footprint = simulation.network.running(simulation.jobs[run.number].name)
    return {
        **{name: value for name, value in vars(run).items() if name not in ("allocation", "pace")},
        "allocation": run.allocation.as_document(),
        "pace": asdict(run.pace),
        "footprint": {name: _packed(getattr(footprint, name)) for name in _COLUMNS} | {"sent": footprint.sent},
    }


def _restore_run(simulation: Simulation, entry: dict[str, Any]) -> None:
    fields = dict(entry)
    columns, pace = fields.pop("footprint"), Pace(**fields.pop("pace"))
    allocation = Allocation.from_document(fields.pop("allocation"))
    run = Running(allocation=allocation, pace=pace, **fields)
    job = simulation.jobs[run.number]
    arrays = {name: _unpacked(columns[name]) for name in _COLUMNS}
    simulation.network.start(job.name, run.number, Footprint(work=job.work, sent=columns["sent"], **arrays))
    simulation.network.restore(job.name, pace)
    simulation.running[run.number] = run
    simulation.finishes.expect(run.number, run.finish_s)


def _record(record: JobRecord) -> dict[str, Any]:
    return {**vars(record), "stretches": _stretches(record.stretches), "waited_s": dict(record.waited_s)}


def _record_of(document: dict[str, Any]) -> JobRecord:
    return JobRecord(**{**document, "stretches": tuple(_stretches_of(document["stretches"]))})


def _past(past: Past) -> dict[str, Any]:
    return {**vars(past), "stretches": _stretches(past.stretches)}


def _past_of(document: dict[str, Any]) -> Past:
    return Past(**{**document, "stretches": _stretches_of(document["stretches"])})


def _stretches(stretches: Sequence[Stretch]) -> list[list[Any]]:
    return [[one.start_s, one.end_s, one.allocation.as_document()] for one in stretches]


def _stretches_of(document: list[list[Any]]) -> list[Stretch]:
    return [Stretch(start, end, Allocation.from_document(place)) for start, end, place in document]


def _packed(array: NDArray[Any]) -> list[str]:
    return [array.dtype.str, b64encode(np.ascontiguousarray(array).tobytes()).decode()]


def _unpacked(packed: list[str]) -> NDArray[Any]:
    kind, text = packed
    return np.frombuffer(b64decode(text), np.dtype(kind)).copy()
