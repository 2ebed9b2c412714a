"""Circuits over time, and how few of them have to change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.cluster.allocation import Allocation
from ropewalk.cluster.job import Job
from ropewalk.cluster.occupancy import Occupancy
from ropewalk.cluster.optical.allocate import ocs_vclos
from ropewalk.cluster.optical.circuits import circuits_of
from ropewalk.cluster.optical.clos import Shape, over_clos
from ropewalk.cluster.optical.fibres import FreeFibres, free_fibres
from ropewalk.cluster.optical.invariants import check_circuits
from ropewalk.cluster.optical.plant import OpticalPlant, optical_plant
from ropewalk.cluster.optical.programs import Laid, rewiring_program
from ropewalk.cluster.optical.rewire import migration, reuse_circuits
from ropewalk.cluster.optical.sequence import CircuitLog, circuits_over_time
from ropewalk.cluster.replay import replay
from ropewalk.cluster.work import Work
from ropewalk.errors import ClusterError

PLANT = optical_plant(leafs=6, spines=3, gpus_per_leaf=4, gpus_per_server=2)


def job(state: Occupancy, name: str, gpus: int) -> Allocation:
    got = ocs_vclos(state, name, gpus)
    assert isinstance(got, Allocation)
    return got


def clos(state: Occupancy, name: str, shape: Shape) -> Allocation:
    got = over_clos(state, free_fibres(state), name, shape)
    assert isinstance(got, Allocation)
    return got


def test_a_job_waits_for_its_mirrors_once_and_not_at_all_where_its_circuits_are_there() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    first = log.start(10.0, job(state, "a", 12))
    assert (first.ready_s, len(first.set_up), first.torn_down) == (10.05, 12, ())
    log.end(20.0, "a")
    again = log.start(30.0, replace(job(state, "a", 12), job="b"))
    assert (again.ready_s, again.set_up, again.torn_down) == (30.0, (), ())


def test_idle_circuits_stay_until_a_fibre_of_theirs_is_needed() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    star = job(state, "a", 12)
    log.start(0.0, star)
    log.end(1.0, "a")
    assert log.idle() == tuple(sorted(circuits_of(PLANT, star)))
    straight = job(state, "b", 8)
    change = log.start(2.0, straight)
    assert len(change.torn_down) == 8
    assert set(log.circuits()) == set(change.circuits) == (set(log.idle()) | set(circuits_of(PLANT, straight)))


def test_each_change_is_a_fabric_of_its_own() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    for name, size in (("a", 12), ("b", 8)):
        got = job(state, name, size)
        state.place(got)
        log.start(0.0, got)
    links = [change.fabric(PLANT).links for change in log.changes]
    assert links == [2 * (24 + 12 + 24), 2 * (24 + 12 + 4 + 24)]


def test_a_replay_is_a_sequence_of_fabrics_in_which_running_circuits_stay() -> None:
    random = np.random.default_rng(1)
    sizes = random.choice([4, 8, 12], 60).tolist()
    jobs = [Job(f"j{n}", size, float(n), int(random.integers(1, 8)), Work(1.0)) for n, size in enumerate(sizes)]
    found = replay(PLANT, jobs, allocate="ocs-vclos", routing="source", check_every_event=True)
    log = circuits_over_time(PLANT, found.jobs)  # refuses to touch a circuit of a running job
    crossing = [job for job in found.jobs if job.allocation.stage == "ocs"]
    assert [change.job for change in log.changes] == [
        job.name for job in sorted(crossing, key=lambda job: (job.start_s, found.jobs.index(job)))
    ]
    assert any(change.torn_down for change in log.changes)
    for change in log.changes:
        (record,) = (job for job in crossing if job.name == change.job)
        assert set(circuits_of(PLANT, record.allocation)) <= set(change.circuits)


def test_a_running_circuit_is_never_broken_and_time_never_goes_back() -> None:
    log, state = CircuitLog(PLANT), Occupancy(PLANT)
    log.start(5.0, job(state, "a", 8))
    with pytest.raises(ClusterError, match="running job"):
        log.start(6.0, clos(state, "b", Shape(3, 4)))
    with pytest.raises(ClusterError, match="in the order of time"):
        log.end(1.0, "a")
    with pytest.raises(ClusterError, match="end a job that was started"):
        log.end(7.0, "z")


def test_a_job_takes_circuits_that_are_there_already() -> None:
    state = Occupancy(PLANT)
    log = CircuitLog(PLANT)
    wanted = clos(state, "a", Shape(3, 4))
    turned = replace(wanted, job="before", cables=tuple((switch + 1) % 4 for switch in wanted.cables))
    log.start(0.0, turned)
    log.end(1.0, "before")
    better = reuse_circuits(state, wanted, log.idle())
    state.place(better)
    check_circuits(state)
    assert log.start(2.0, better).set_up == ()
    assert len(set(circuits_of(PLANT, wanted)) - set(circuits_of(PLANT, turned))) > 0


def test_rewiring_changes_as_few_circuits_as_a_search_of_all_ways_finds() -> None:
    # One leaf, two spines, three switches, all fibres free: circuits now at (spine 0, switch 0); one each is wanted.
    fibres = FreeFibres(np.ones((1, 3), bool), np.ones((2, 3), np.int64))
    laid = rewiring_program(fibres, {(0, 0): 1, (0, 1): 1}, [(0, 0, 2), (0, 1, 2)])
    assert isinstance(laid, Laid)
    chosen = set(zip(laid.leaf.tolist(), laid.spine.tolist(), laid.switch.tolist(), strict=True))
    assert len(chosen) == 2
    assert len(chosen & {(0, 0, 2), (0, 1, 2)}) == 1  # a leaf has one fibre to switch 2


def test_moving_running_circuits_is_counted_and_never_done() -> None:
    plant = optical_plant(leafs=2, spines=2, gpus_per_leaf=2, gpus_per_server=1, switches=2, spine_ports=2)
    assert isinstance(plant, OpticalPlant)
    state = Occupancy(plant)
    # The only circuit runs through switch 0; spine 1 is then asked for at both leafs through what is left.
    held = Allocation("a", (0, 2), "ocs", (0, 1), (0,), ((0, 0), (1, 0)), (0, 0), (0, 1), cables=(0, 1))
    state.place(held)
    check_circuits(state)
    answer = migration(state, [(0, 1), (1, 1)])
    assert answer is not None
    assert answer.moved == 0
    assert migration(state, [(0, 1), (0, 1)]) is None
    assert state.jobs["a"] is held
