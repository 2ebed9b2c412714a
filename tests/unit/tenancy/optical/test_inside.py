"""OCS-vClos inside pods: its stages, one tiny world each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tree_states import three_tiers

from ropewalk.errors import ClusterError, PhysicsError
from ropewalk.report.cluster_map import rectangles
from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure, loses_links
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import as_virtual_tree, circuits_of, start_delay_s
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.inside import ocs_vclos_pods
from ropewalk.tenancy.optical.pod_choice import first_in_common
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres
from ropewalk.tenancy.optical.pod_invariants import check_pod_circuits
from ropewalk.tenancy.optical.pod_lanes import LeafPart, PodLanes, exact_pod_lanes, quick_pod_lanes
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.optical.sequence import changes_of, turned
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.timeline import Timeline
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.work import Iteration

TREE = three_tiers(pods=3, leafs=2, lanes=2, cores=2, servers=2, size=1)
PLANT = PodOpticalPlant.of_plant(TREE)


def placed(state: Occupancy, job: str, gpus: int) -> Allocation:
    got = ocs_vclos_pods(state, job, gpus)
    assert isinstance(got, Allocation), got
    state.place(got)
    state.check()
    check_pod_circuits(state)
    return got


def test_a_job_on_one_leaf_takes_no_fibre_and_waits_for_no_mirror() -> None:
    state = Occupancy(PLANT)
    job = placed(state, "a", 2)
    assert (job.stage, job.links, start_delay_s(PLANT, job)) == ("leaf", (), 0)
    assert free_pod_fibres(state).leaf.all()


def test_a_job_in_one_pod_takes_the_circuits_that_stand_for_cables() -> None:
    job = placed(Occupancy(PLANT), "a", 4)
    assert (job.stage, job.leafs, job.core_links) == ("ocs", (0, 1), ())
    assert list(job.cables) == [int(PLANT.home_switch[leaf, spine, 0]) for leaf, spine in job.links]
    assert start_delay_s(PLANT, job) == 0.05


def test_a_job_over_pods_takes_the_lanes_and_cores_that_vclos_takes_and_their_circuits() -> None:
    job, cabled = placed(Occupancy(PLANT), "a", 8), vclos()(Occupancy(TREE), "a", 8)
    assert isinstance(cabled, Allocation)
    assert (job.stage, job.leafs, job.spines) == ("ocs-pods", cabled.leafs, cabled.spines)
    assert sorted(job.reserved_above()) == sorted(cabled.reserved_above())
    assert isinstance(contention_free(as_virtual_tree(PLANT, job), "all-to-all"), Proof)


def test_two_leafs_whose_free_cables_lead_to_different_spines_are_joined_all_the_same() -> None:
    tree = three_tiers(pods=2, leafs=2, lanes=3, cores=1, servers=2, size=1)
    cables, circuits = Occupancy(tree), Occupancy(PodOpticalPlant.of_plant(tree))
    for state in (cables, circuits):
        # One cable of each leaf of pod 1 is left with a spine that the other leaf still reaches.
        state.drain(Drained(links=[(2, 3), (3, 4)], servers=[0, 1, 2, 3]))
    assert isinstance(vclos()(cables, "a", 4), Waiting)
    job = placed(circuits, "a", 4)
    assert job.leafs == (2, 3)
    assert set(job.spines) <= {3, 4, 5}
    assert {tree.tiers.pod_of_spine[spine] for _, spine in job.links} == {1}


def test_jobs_side_by_side_have_fibres_and_cores_of_their_own_and_leave_nothing_taken() -> None:
    state = Occupancy(PLANT)
    for name in ("a", "b", "c"):
        placed(state, name, 4)
    assert not free_pod_fibres(state).leaf.any()
    waits = ocs_vclos_pods(state, "d", 2)
    assert isinstance(waits, Waiting)
    assert waits.reason is Reason.GPU_SHORTAGE
    before = circuits_of(PLANT, state.jobs["b"])
    state.release("a")
    placed(state, "e", 4)
    assert circuits_of(PLANT, state.jobs["b"]) == before
    for name in ("b", "c", "e"):
        state.release(name)
    assert np.array_equal(free_pod_fibres(state).spine, PLANT.spine_fibres)


def test_a_job_without_cores_waits_for_the_network_and_one_without_an_equal_split_forever() -> None:
    state = Occupancy(PLANT)
    state.drain(Drained(cores=range(PLANT.cores)))
    waits = ocs_vclos_pods(state, "a", 8)
    assert isinstance(waits, Waiting)
    assert (waits.reason, waits.tier, waits.never) == (Reason.NETWORK_FRAGMENTATION, "spine", False)
    assert "(pods×leafs×spines: 2×2×2)" in waits.explanation
    waits = ocs_vclos_pods(state, "b", 7)
    assert isinstance(waits, Waiting)
    assert waits.never


def test_broken_circuits_lanes_and_cores_are_found() -> None:
    job = placed(Occupancy(PLANT), "a", 8)
    for wrong, told in (
        (replace(job, cables=(0,) * 8), "is in 2 circuits"),
        (replace(job, spines=job.spines[::-1]), "have different lanes"),
        (replace(job, core_of_gpu=job.core_of_gpu[::-1]), "sends over other links than its own"),
        (replace(job, links=tuple((leaf, 5 - spine) for leaf, spine in job.links)), "leads to another pod"),
    ):
        state = Occupancy(PLANT)
        state.place(wrong)
        with pytest.raises(PhysicsError, match=told):
            check_pod_circuits(state)


def test_pods_that_fit_best_make_way_for_others_that_share_lanes() -> None:
    lanes = [np.array(own, bool) for own in ([1, 0], [0, 1], [0, 1])]
    cores = [np.full((2, 1), 1, np.uint64)] * 3
    assert first_in_common(lanes, cores, 2, 1, 1) == (1, 2)
    assert first_in_common(lanes, cores, 3, 1, 1) is None
    assert first_in_common(lanes, cores, 2, 1, 2) is None  # one core in a lane
    assert isinstance(first_in_common(lanes, cores, 2, 1, 1, node_limit=2), ProgramUndecided)


def test_a_lane_that_one_pod_cannot_join_makes_way_for_another() -> None:
    whole = FreeFibres(np.ones((2, 2), bool), np.full((2, 2), 2, np.int64))
    broken = FreeFibres(np.ones((2, 2), bool), np.array([[1, 0], [1, 1]], np.int64))
    parts, candidates = [LeafPart(one, np.array([1, 1])) for one in (whole, broken)], np.array([0, 1])
    for laid in (quick_pod_lanes(parts, candidates, 1), exact_pod_lanes(parts, candidates, 1)):
        assert isinstance(laid, PodLanes)
        assert laid.lanes.tolist() == [1]
    assert quick_pod_lanes(parts, candidates, 2) is exact_pod_lanes(parts, candidates, 2) is None
    assert isinstance(exact_pod_lanes(parts, candidates, 1, most=3), ProgramUndecided)


def test_a_dead_link_hits_whoever_has_its_fibre_and_nobody_else() -> None:
    state = Occupancy(PLANT)
    job = placed(state, "a", 4)
    assert loses_links(Drained(links=[(0, 0)]), PLANT, job)
    assert not loses_links(Drained(links=[(2, 2)]), PLANT, job)
    assert loses_links(Drained(spines=[job.spines[0]]), PLANT, job)
    moved = replace(job, links=((0, 1), (0, 0), (1, 1), (1, 0)))
    assert loses_links(Drained(links=[(0, 0)]), PLANT, moved)


def test_a_state_reads_back_and_no_fibre_of_it_is_given_away() -> None:
    state = Occupancy(PLANT)
    placed(state, "a", 8)
    again = Occupancy.from_document(PLANT, state.as_document())
    check_pod_circuits(again)
    assert again.jobs == state.jobs
    assert np.array_equal(free_pod_fibres(again).leaf, free_pod_fibres(state).leaf)


JOBS = [Job(f"j{at}", gpus, float(at), 5, Iteration(1.0)) for at, gpus in enumerate([8, 4, 4, 8, 12, 4])]


def test_a_replay_counts_circuits_charges_each_start_once_and_moves_jobs_off_a_dead_core() -> None:
    policy = POLICIES["ocs-vclos-pods"]
    dead = Failure(1.5, Drained(core_links=[(0, 0)]))
    found = replay(
        policy.plant(TREE), JOBS, allocate=policy.make, rules=Rules("source"), check_every_event=True, failures=[dead]
    )
    counts = turned(changes_of(PLANT, found.jobs))
    starts = [one for job in found.jobs for one in job.stretches if one.allocation.has_circuits]
    assert len(found.jobs[0].stretches) == 2, "its cable to the core died"
    assert counts["jobs"] == len(starts)
    assert counts["set_up"] + counts["kept"] == sum(one.allocation.size for one in starts)
    assert counts["kept"] > 0
    assert found.jobs[1].jrt_s == pytest.approx(5 * 1.0 + 0.05)
    drawn = [one for one in rectangles(PLANT, found.jobs) if PLANT.leafs <= one.band < PLANT.leafs + 6]
    assert sum(one.high - one.low for one in drawn) == sum(
        one.allocation.size for one in starts if one.end_s > one.start_s
    )


class Killed(Exception):
    """Ends a replay in its middle."""


def test_a_replay_goes_on_after_a_kill_and_only_on_the_same_plant(tmp_path: Path) -> None:
    policy, file = POLICIES["ocs-vclos-pods"], tmp_path / "replay.json"

    def run(delay_s: float = 0.05, **more: object) -> Timeline:
        where = PodOpticalPlant.of_plant(TREE, reconfiguration_s=delay_s)
        return replay(where, JOBS, allocate=policy.make, rules=Rules("source"), **more)  # type: ignore[arg-type]

    def die(done: int, total: int, now_s: float) -> None:
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        run(checkpoint=file, checkpoint_every=2, progress=die)
    with pytest.raises(ClusterError, match="another cluster"):
        run(1.0, checkpoint=file, resume=True)
    assert run(checkpoint=file, resume=True).as_json() == run().as_json()
