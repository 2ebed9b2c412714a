"""A whole trace on a plant: jobs come, wait, start, slow each other down, finish; links and switches may die."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.files import require_writable
from ropewalk.progress import Progress
from ropewalk.tenancy import checkpoint as on_disk
from ropewalk.tenancy.failure import Failure, check_failures, check_policy
from ropewalk.tenancy.job import Job, check_jobs
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_invariants import check_pod_circuits
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.pods import check_core_circuits
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.simulation import Rules, Simulation
from ropewalk.tenancy.timeline import Curves, Timeline

EVENTS_BETWEEN_CHECKPOINTS = 1000
USUAL = Rules()


def replay(
    plant: Plant,
    jobs: Sequence[Job],
    *,
    allocate: Allocate | str,
    rules: Rules = USUAL,
    policy: str | None = None,
    failures: Sequence[Failure] = (),
    state: Occupancy | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: int = EVENTS_BETWEEN_CHECKPOINTS,
    check_every_event: bool = False,
) -> Timeline:
    """Run a trace from its first arrival to its last finish.

    `allocate` is a policy or its name; `rules` say how the cluster is run; `state` is where it starts from (empty
    unless given), and is not changed. Under an isolating policy use the routing `source`: it follows the reserved
    spines. `checkpoint` names a file that is written every so many events; with `resume` the replay goes on from there,
    to the same bytes. `check_every_event` proves all invariants of the state each time, which is for tests.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.work import Iteration
    >>> jobs = [Job(name, 8, arrival, 10, Iteration(1.0)) for name, arrival in (("a", 0.0), ("b", 4.0))]
    >>> found = replay(plant("leaf-spine:2x4x4", gpus_per_server=4), jobs, allocate="none", rules=Rules("ideal"))
    >>> [(job.start_s, job.finish_s, job.main_reason) for job in found.jobs]
    [(0.0, 10.0, None), (10.0, 20.0, 'gpu-shortage')]
    """
    check_jobs(jobs, plant)
    check_failures(failures, plant)
    check_policy(rules.when_a_link_dies)
    known = allocator_named(allocate) if isinstance(allocate, str) else allocate
    name = policy or (allocate if isinstance(allocate, str) else str(getattr(allocate, "__name__", "policy")))
    begin = Occupancy(plant) if state is None else state.copy()
    simulation = Simulation(jobs, begin, known, rules, failures)
    question = on_disk.fingerprint(plant, jobs, name, rules, failures)
    if checkpoint is not None:
        require_writable(checkpoint)
        if resume:
            on_disk.resume(checkpoint, simulation, question)
    elif resume:
        raise ClusterError("there is no checkpoint to resume from: name its file")
    while simulation.advance():
        if check_every_event:
            _check(simulation.state)
        if checkpoint is not None and simulation.events % checkpoint_every == 0:
            on_disk.write(checkpoint, simulation, question)
        if progress is not None:
            done = len(simulation.records) + len(simulation.refused)
            progress(done, len(jobs), f"{name}: {simulation.now_s / 3600:.1f} h simulated")
    if checkpoint is not None:
        on_disk.write(checkpoint, simulation, question)
    return _timeline(simulation, name, failures)


def _check(state: Occupancy) -> None:
    """All invariants of a state, with those of its circuits."""
    state.check()
    if isinstance(state.plant, OpticalPlant):
        check_circuits(state)
    if isinstance(state.plant, CoreOpticalPlant):
        check_core_circuits(state)
    if isinstance(state.plant, PodOpticalPlant):
        check_pod_circuits(state)


def _timeline(simulation: Simulation, policy: str, failures: Sequence[Failure]) -> Timeline:
    plant, rules, curve = simulation.plant, simulation.rules, simulation.curve
    optical = OpticalPlant | CoreOpticalPlant | PodOpticalPlant
    return Timeline(
        plant=plant.name,
        plant_gpus=plant.gpus,
        policy=policy,
        routing=rules.routing,
        queue=rules.queue,
        backfill=rules.backfill,
        seed=rules.seed,
        jobs=tuple(simulation.records[number] for number in sorted(simulation.records)),
        refused=tuple(simulation.refused[number] for number in sorted(simulation.refused)),
        curves=Curves(
            np.array(curve.time_s),
            np.array(curve.used_gpus, np.int64),
            np.array(curve.queued_jobs, np.int64),
            np.array(curve.wanted_gpus, np.int64),
        ),
        blocked=tuple(simulation.waits.blocked),
        patching=None if simulation.panels is None else simulation.panels.done,
        settings={
            "when_a_link_dies": rules.when_a_link_dies,
            "circuit_delay_s": plant.reconfiguration_s if isinstance(plant, optical) else 0.0,
            "patch_delay_s": plant.patch_s if isinstance(plant, PanelPlant) else 0.0,
            "failures": len(failures),
            "events": simulation.events,
        },
    )
