"""A replay on disk: everything that the events so far have left behind, so that a killed replay goes on byte for byte.

The file is JSON with a checksum, written whole or not at all. Numbers keep every bit; links of running jobs are kept as
they were chosen, because some routings choose by what was running then. A file that is damaged, or that contradicts
itself, is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ropewalk.documents.sealed import read_sealed, sealed
from ropewalk.errors import ClusterError
from ropewalk.files import write_whole
from ropewalk.records import plain, record
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.running import Running
from ropewalk.tenancy.saved_replay import SavedFootprint, SavedReplay, SavedRun
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.simulation import Rules, Simulation
from ropewalk.tenancy.waits import Waits

VERSION = 4
_ANEW = "start again without resuming"


def fingerprint(plant: Plant, jobs: Sequence[Job], policy: str, rules: Rules, failures: Sequence[Failure]) -> str:
    """What a replay was asked, in a few letters: it may only be continued for the same question."""
    digest = hashlib.sha256()
    optical: tuple[Any, ...] = ()
    if isinstance(plant, OpticalPlant | CoreOpticalPlant | PodOpticalPlant):
        fibres = plant.core_fibres if isinstance(plant, CoreOpticalPlant) else plant.spine_fibres
        optical = fibres, np.float64(plant.reconfiguration_s)
    panels = (
        (np.array([plant.patch_s, plant.flip_s, plant.panels, plant.panel_ports]),)
        if isinstance(plant, PanelPlant)
        else ()
    )
    for array in (plant.server_leaf, plant.cables, plant.core_cables, np.int64(plant.rails), *optical, *panels):
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
        "line": [(number, simulation.line.was_thrown_out(number)) for number in simulation.line],
        "running": [_run(simulation, run) for run in simulation.running.values()],
        "waits": list(simulation.waits.of.items()),
        "blocked": simulation.waits.blocked,
        "blocked_head": simulation.waits.head,
        "pasts": list(simulation.pasts.items()),
        "records": list(simulation.records.items()),
        "refused": list(simulation.refused.items()),
        "curve": simulation.curve,
        "promises": [] if simulation.panels is None else list(simulation.panels.promises.items()),
        "patched": None if simulation.panels is None else simulation.panels.done,
    }
    write_whole(path, json.dumps(sealed(plain(content))))


def resume(path: str | Path, simulation: Simulation, question: str) -> None:
    """Bring a fresh simulation to where the file says it was."""
    subject = f"replay {path}"
    document = read_sealed(Path(path), subject, ClusterError, _ANEW)
    if document.get("version") != VERSION:
        raise ClusterError(f"{subject} was written by another version of ropewalk: {_ANEW}")
    saved = record(SavedReplay, document, subject, ClusterError)
    if saved.question != question:
        raise ClusterError(
            f"{path} is the replay of other jobs, another cluster or other rules: give the same ones, or {_ANEW}"
        )
    saved.check(len(simulation.jobs), len(simulation.changes), simulation.plant)
    _restore(simulation, saved)


def _restore(simulation: Simulation, saved: SavedReplay) -> None:
    simulation.now_s, simulation.events = saved.now_s, saved.events
    simulation.arrived, simulation.changed = saved.arrived, saved.changed
    simulation.state = type(simulation.state).from_document(simulation.plant, plain(saved.state))
    dead = saved.dead.drained()
    dead.check(simulation.plant)
    simulation.bury(dead)
    for number, thrown_out in saved.line:
        simulation.stand_in_line(number, again=thrown_out)
    simulation.waits = Waits(dict(saved.waits), list(saved.blocked), saved.blocked_head)
    simulation.pasts = dict(saved.pasts)
    simulation.refused = dict(saved.refused)
    simulation.curve = saved.curve
    simulation.records = dict(saved.records)
    if simulation.panels is not None and saved.patched is not None:
        simulation.panels.promises, simulation.panels.done = dict(saved.promises), saved.patched
    for run in saved.running:
        _restore_run(simulation, run)
    if saved.tried is not None:
        simulation.remember_try(*saved.tried)


def _run(simulation: Simulation, run: Running) -> dict[str, Any]:
    footprint = simulation.network.running(simulation.jobs[run.number].name)
    return {**vars(run), "footprint": SavedFootprint.of(footprint)}


def _restore_run(simulation: Simulation, saved: SavedRun) -> None:
    run = Running(**{name: value for name, value in vars(saved).items() if name != "footprint"})
    job = simulation.jobs[run.number]
    if simulation.state.jobs.get(job.name) != run.allocation:
        raise ClusterError(f"job {job.name} runs on other GPUs than it holds: {_ANEW}")
    if not (run.pace.iteration_s > 0 and run.quiet_iteration_s > 0):
        raise ClusterError(f"job {job.name} has an iteration that takes no time: {_ANEW}")
    footprint = saved.footprint.footprint(job.work, simulation.plant, job.gpus)
    simulation.network.start(job.name, run.number, footprint)
    simulation.network.restore(job.name, run.pace)
    simulation.running[run.number] = run
    simulation.finishes.expect(run.number, run.finish_s)
