"""Circuits over time: what is set up, kept and torn down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from optical_plants import optical_plant

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.optical.circuits import circuits_of
from ropewalk.tenancy.optical.clos import ClosShape, over_clos
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.sequence import CircuitLog, changes_of, turned
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.work import Iteration

PLANT = optical_plant(leafs=6, spines=3, gpus_per_leaf=4, gpus_per_server=2)


def job(state: Occupancy, name: str, gpus: int) -> Allocation:
    got = ocs_vclos(state, name, gpus)
    assert isinstance(got, Allocation)
    return got


def clos(state: Occupancy, name: str, shape: ClosShape) -> Allocation:
    got = over_clos(state, free_fibres(state), name, shape)
    assert isinstance(got, Allocation)
    return got


def test_a_job_keeps_the_circuits_that_another_one_has_left() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    first = log.start(job(state, "a", 12))
    assert (len(first.set_up), first.kept, first.torn_down) == (12, (), ())
    log.end("a")
    again = log.start(replace(job(state, "a", 12), job="b"))
    assert (again.set_up, sorted(again.kept), again.torn_down) == ((), sorted(first.set_up), ())


def test_idle_circuits_stay_until_a_fibre_of_theirs_is_needed() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    star = job(state, "a", 12)
    log.start(star)
    log.end("a")
    assert log.idle() == tuple(sorted(circuits_of(PLANT, star)))
    straight = job(state, "b", 8)
    change = log.start(straight)
    assert len(change.torn_down) == 8
    assert set(log.circuits()) == set(log.idle()) | set(circuits_of(PLANT, straight))


def test_a_replay_changes_circuits_at_every_start_and_never_those_of_running_jobs() -> None:
    random = np.random.default_rng(1)
    sizes = random.choice([4, 8, 12], 60).tolist()
    jobs = [Job(f"j{n}", size, float(n), int(random.integers(1, 8)), Iteration(1.0)) for n, size in enumerate(sizes)]
    found = replay(PLANT, jobs, allocate="ocs-vclos", rules=Rules("source"), check_every_event=True)
    changes = changes_of(PLANT, found.jobs)  # refuses to touch a circuit of a running job
    crossing = {job.name: job for job in found.jobs if job.allocation.stage == "ocs"}
    starts = sorted(crossing.values(), key=lambda job: (job.start_s, found.jobs.index(job)))
    assert [change.job for change in changes] == [job.name for job in starts]
    assert any(change.torn_down for change in changes)
    for change in changes:
        assert {*change.set_up, *change.kept} == set(circuits_of(PLANT, crossing[change.job].allocation))
    counts = turned(changes)
    assert counts["set_up"] + counts["kept"] == sum(len(circuits_of(PLANT, job.allocation)) for job in starts)
    assert 0 < counts["torn_down"] <= counts["set_up"]


def test_a_running_circuit_is_never_broken() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    log.start(job(state, "a", 8))
    with pytest.raises(ClusterError, match="of a running job"):
        log.start(clos(state, "b", ClosShape(3, 4)))
    with pytest.raises(ClusterError, match="running already"):
        log.start(job(state, "a", 8))
    with pytest.raises(ClusterError, match="end a job that was started"):
        log.end("z")
