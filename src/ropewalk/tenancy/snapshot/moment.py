"""Who runs at a moment: of a trace that is replayed up to it, or of a cluster whose state is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
from ropewalk.tenancy.simulation import Rules, Simulation
from ropewalk.tenancy.snapshot.tenant import Moment, Tenant
from ropewalk.tenancy.work import Work


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
    >>> jobs = [Job(name, 8, arrival, 10, Work(1.0)) for name, arrival in (("a", 0.0), ("b", 4.0))]
    >>> found = moment_of_replay(POLICIES["ecmp"], plant("leaf-spine:2x4x4", 4), jobs, Conditions(), at_s=2.75)
    >>> [(one.name, one.start_s) for one in found.tenants]
    [('a', 0.25)]
    """
    refused = policy.applies(conditions.failures)
    if refused is not None:
        raise ClusterError(f"policy {policy.name} {refused}: let a spine or leaf fail")
    place = policy.plant(plant, conditions.circuit_delay_s)
    check_jobs(jobs, place)
    check_failures(conditions.failures, place)
    rules = Rules(
        policy.routing, conditions.queue, conditions.backfill or "none", conditions.seed, conditions.when_a_link_dies
    )
    simulation = Simulation(jobs, Occupancy(place), policy.make, rules, conditions.failures)
    while simulation.next_s() <= at_s:
        simulation.advance()
        if progress is not None:
            done = len(simulation.records) + len(simulation.refused)
            progress(done, len(jobs), f"{policy.name}: {simulation.now_s / 3600:.1f} h simulated")
    when = f"at {at_s:,.10g} s of {trace} under {policy.name}"
    if not simulation.running:
        raise ClusterError(f"no job runs {when}: {_better_moment(simulation)}")
    tenants = (
        Tenant(run.allocation, simulation.network.running(jobs[number].name), number, _next_iteration_s(run, at_s))
        for number, run in sorted(simulation.running.items())
    )
    return Moment(place, policy, conditions.seed, tuple(tenants), when)


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
        return f"most GPUs are in use at {at_s!r} s, give --at {at_s!r}s"
    while not simulation.running and simulation.advance():
        pass
    if not simulation.running:
        return "none ever starts, `ropewalk cluster explain` says why"
    return f"the first one starts at {simulation.now_s!r} s, give --at {simulation.now_s!r}s"


def moment_of_state(policy: Policy, state: Occupancy, works: Mapping[str, Work], seed: int = 0) -> Moment:
    """The jobs of a state, with what each of them does; where in its iteration a job is, is drawn from the seed."""
    findings = Findings(ClusterError, "jobs of the state")
    for name in state.jobs:
        if name not in works:
            findings.add(f"nothing says what {name} does: add a line for it to the jobs")
    if not state.jobs:
        findings.add("none runs: place jobs with `ropewalk cluster allocate --save`")
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
