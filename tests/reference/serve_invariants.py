"""What must hold between any two operations: nothing in two jobs, nothing leaked, the queue in order, reasons true."""

from __future__ import annotations

from ropewalk.errors import Findings, PhysicsError
from ropewalk.serve.dispatch import place_of
from ropewalk.serve.job import ServedJob
from ropewalk.serve.state import State
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_invariants import check_pod_circuits
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.pods import check_core_circuits


def check(state: State) -> None:
    """Prove it of a whole state, from the jobs alone; what is wrong is reported together."""
    findings = Findings(PhysicsError, f"controller of {state.plant.name}")
    for job in state.jobs.values():
        _check_job(state, job, findings)
    _check_holders(state, findings)
    _check_line(state, findings)
    if state.occupancy.drained != state.drained | state.failed | state.open_links():
        findings.add("what new jobs may not get is not what is out of service or shared")
    findings.raise_if_any()
    state.occupancy.check()
    if isinstance(state.occupancy.plant, OpticalPlant):
        check_circuits(state.occupancy)
    if isinstance(state.occupancy.plant, CoreOpticalPlant):
        check_core_circuits(state.occupancy)
    if isinstance(state.occupancy.plant, PodOpticalPlant):
        check_pod_circuits(state.occupancy)


def _check_job(state: State, job: ServedJob, findings: Findings) -> None:
    held = job.allocation
    if job.state == "running" and (held is None or held.size != job.gpus or held.job != job.id):
        findings.add(f"job {job.id} runs without exactly its {job.gpus} GPUs")
    if job.state != "running" and held is not None:
        findings.add(f"job {job.id} is {job.state} but holds something")
    if not job.live:
        findings.add(f"job {job.id} is over but listed as live")
    if not 0 < job.number < state.next_job:
        findings.add(f"job {job.id} has a number that was not given yet")
    if (job.state == "ended") != (job.outcome is not None):
        findings.add(f"job {job.id} is {job.state} with outcome {job.outcome}")
    if job.expires_at is not None and (job.expires_at, job.number) not in state.expiries:
        findings.add(f"the reservation of job {job.id} has no expiry")


def _check_holders(state: State, findings: Findings) -> None:
    """Who holds something in the occupancy is who runs, and nobody else."""
    running = {job.id: job.allocation for job in state.jobs.values() if job.state == "running"}
    if running != state.occupancy.jobs:
        findings.add("the running jobs are not those that hold GPUs")
    releasing = {f"{job.id}/{number}": held for job in state.jobs.values() for number, held in job.releasing}
    if releasing != state.occupancy.releasing:
        findings.add("the links that are being released are not those that jobs name")


def _check_line(state: State, findings: Findings) -> None:
    waiting = [job for job in state.jobs.values() if job.waits_in_line]
    order = state.settings.order
    waiting.sort(key=lambda job: (not job.again, -job.priority, order(job, state.run_s), job.submitted_at, job.number))
    if [job.number for job in waiting] != list(state.line):
        findings.add("the queue is not in its order")
    if not waiting:
        return
    found = place_of(state, state.occupancy, waiting[0])
    if isinstance(found, Allocation):
        findings.add(f"job {waiting[0].id} is first in the queue, could start and was not started")
    elif state.lack is None or state.lack.reason != found.reason:
        findings.add(f"job {waiting[0].id} waits for another reason than it says")
