"""Who runs at a moment: of a trace that is replayed up to it, or of a cluster whose state is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ropewalk.errors import ClusterError, Findings
from ropewalk.progress import Progress
from ropewalk.tenancy.failure import check_failures
from ropewalk.tenancy.job import Job, check_jobs
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.question import Conditions
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.running import Running
from ropewalk.tenancy.simulation import Simulation
from ropewalk.tenancy.snapshot.tenant import Moment, Tenant
from ropewalk.tenancy.work import Iteration


def moment_of_replay(
    policy: Policy,
    plant: Plant,
    jobs: Sequence[Job],
    conditions: Conditions,
    at_s: float,
    *,
    trace: str = "the trace",
    progress: Progress | None = None,
) -> Moment:
    """The jobs that run at a moment of a replay, each as far into its iteration as it is then.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.policies import POLICIES
    >>> jobs = [Job(name, 8, arrival, 10, Iteration(1.0)) for name, arrival in (("a", 0.0), ("b", 4.0))]
    >>> found = moment_of_replay(POLICIES["ecmp"], plant("leaf-spine:2x4x4", 4), jobs, Conditions(), at_s=2.75)
    >>> [(one.name, one.start_s) for one in found.tenants]
    [('a', 0.25)]
    """
    simulation = _begun(policy, plant, jobs, conditions)
    _go_on(simulation, policy, at_s, progress)
    found = _moment_now(simulation, policy, at_s, trace)
    if not found.tenants:
        raise ClusterError(f"no job runs {found.taken}: {_better_moment(simulation)}")
    return found


def moments_of_replay(
    policy: Policy,
    plant: Plant,
    jobs: Sequence[Job],
    conditions: Conditions,
    times_s: Sequence[float],
    *,
    trace: str = "the trace",
    progress: Progress | None = None,
) -> Iterator[Moment]:
    """Several moments of one replay, in order of time; one at which nobody runs has no tenants."""
    simulation = _begun(policy, plant, jobs, conditions)
    for at_s in sorted(times_s):
        _go_on(simulation, policy, at_s, progress)
        yield _moment_now(simulation, policy, at_s, trace)


def _begun(policy: Policy, plant: Plant, jobs: Sequence[Job], conditions: Conditions) -> Simulation:
    refused = policy.applies(conditions.failures, plant)
    if refused is not None:
        raise ClusterError(f"policy {policy.name} {refused}: {conditions.remedy(policy, plant)}")
    place = policy.plant(plant, conditions.circuit_delay_s, conditions.patch_delay_s)
    check_jobs(jobs, place)
    check_failures(conditions.failures, place)
    return Simulation(jobs, Occupancy(place), policy.make, conditions.rules(policy.routing), conditions.failures)


def _go_on(simulation: Simulation, policy: Policy, until_s: float, progress: Progress | None) -> None:
    while simulation.next_s() <= until_s:
        simulation.advance()
        if progress is not None:
            done = len(simulation.records) + len(simulation.refused)
            progress(done, len(simulation.jobs), f"{policy.name}: {simulation.now_s / 3600:.1f} h simulated")


def _moment_now(simulation: Simulation, policy: Policy, at_s: float, trace: str) -> Moment:
    tenants = (
        Tenant(
            run.allocation,
            simulation.network.running(simulation.jobs[number].name),
            number,
            _next_iteration_s(run, at_s),
        )
        for number, run in sorted(simulation.running.items())
    )
    when = f"at {at_s:,.10g} s of {trace} under {policy.name}"
    return Moment(simulation.plant, policy, simulation.rules.seed, tuple(tenants), when)


def _next_iteration_s(run: Running, at_s: float) -> float:
    """How long after a moment a job begins its next iteration."""
    late = max(run.since_s - at_s, 0.0)
    left = run.left - max(at_s - run.since_s, 0.0) / run.pace.iteration_s
    return late + max(left - math.floor(left), 0.0) * run.pace.iteration_s


def _better_moment(simulation: Simulation) -> str:
    """When most GPUs are in use, as far as the replay went; otherwise when the first job starts."""
    time, used = np.array(simulation.curve.time_s), np.array(simulation.curve.used_gpus)
    if used.any():
        busiest = int(np.argmax(used))
        at_s, until_s = float(time[busiest]), float(time[busiest + 1])
        whole = math.ceil(at_s)
        at_s = whole if whole < until_s else at_s
        return f"GPU usage peaks at {at_s!r} s, give --at {at_s!r}s"
    while not simulation.running and simulation.advance():
        pass
    if not simulation.running:
        return "none ever starts: `ropewalk cluster explain` shows why"
    return f"the first one starts at {simulation.now_s!r} s, give --at {simulation.now_s!r}s"


def moment_of_state(policy: Policy, state: Occupancy, works: Mapping[str, Iteration], seed: int = 0) -> Moment:
    """The jobs of a state, with what each of them does; where in its iteration a job is, is drawn from the seed."""
    findings = Findings(ClusterError, "jobs of the state")
    for name in state.jobs:
        if name not in works:
            findings.add(f"the workload of {name} is unknown: add a line for it to the jobs")
    if not state.jobs:
        findings.add("no job runs: place jobs with `ropewalk cluster allocate --save`")
    findings.raise_if_any()
    network = SharedNetwork(state.plant, policy.routing, seed)
    for number, (name, held) in enumerate(state.jobs.items()):
        network.start(name, number, network.footprint(works[name], held))
    network.settle()
    random = np.random.default_rng(seed)
    tenants = tuple(
        Tenant(held, network.running(name), number, float(random.random()) * network.pace(name).iteration_s)
        for number, (name, held) in enumerate(state.jobs.items())
    )
    return Moment(state.plant, policy, seed, tenants, f"in the state under {policy.name}")
