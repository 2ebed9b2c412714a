import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces import (
    SIZES,
    VCLOS_STUDY,
    Preparation,
    Sizes,
    TraceJob,
    load_of,
    mean_gap_for,
    poisson,
    prepare,
)
from ropewalk.tenancy.traces.prepare import matched, power_of_two_from


def _jobs(*gpus, duration=100.0):
    return tuple(TraceJob(str(n), size, float(n), duration, 10) for n, size in enumerate(gpus))


def test_durations_are_clipped_then_floored_and_iterations_follow():
    steps = Preparation(shortest_s=1000, longest_s=100_000, floor_s=100)
    short, middle, long = (prepare(_jobs(1, duration=d), steps)[0] for d in (3.0, 1299.0, 1e6))
    assert (short.duration_s, middle.duration_s, long.duration_s) == (1000, 1200, 100_000)
    assert (short.iterations, long.iterations) == (3333, 1)


def test_sizes_are_rounded_up_to_powers_of_two():
    assert [power_of_two_from(n) for n in (1, 2, 3, 8, 9)] == [1, 2, 4, 8, 16]


def test_the_corrected_slices_are_a_distribution_and_the_published_list_is_refused():
    slices = SIZES["tpu-v4-slices"]
    assert min(slices.shares()) >= 0
    assert sum(slices.shares()) == pytest.approx(1)
    with pytest.raises(ClusterError, match="cumulative shares"):
        Sizes("first", (1, 2, 4, 8), (0.05, 0.10, 0.05, 1.0))


def test_quantiles_are_matched_so_that_larger_jobs_stay_larger():
    sizes = Sizes.of_counts("half", {4: 2, 16: 2})
    assert matched([8, 1, 2, 64], sizes) == [16, 4, 4, 16]


def test_quantile_matching_reproduces_the_distribution():
    slices = SIZES["tpu-v4-slices"]
    found = matched(np.random.default_rng(3).integers(1, 5, 10_000).tolist(), slices)
    counts = [found.count(size) / len(found) for size in slices.gpus]
    assert counts == pytest.approx(slices.shares(), abs=2e-4)


def test_equal_jobs_do_not_grow_along_the_trace():
    found = matched([1] * 2000, SIZES["histogram-10000"], seed=5)
    halves = [np.mean(half) for half in (found[:1000], found[1000:])]
    assert max(halves) < 1.5 * min(halves)
    assert found == matched([1] * 2000, SIZES["histogram-10000"], seed=5)


def test_the_study_of_the_authors_caps_at_512_gpus():
    jobs = prepare(_jobs(*range(1, 400)), VCLOS_STUDY)
    assert max(job.gpus for job in jobs) == 512
    assert {job.gpus for job in jobs} <= set(SIZES["tpu-v4-slices"].gpus)
    assert {job.duration_s for job in jobs} == {1000.0}


def test_flooring_needs_clipping_first():
    with pytest.raises(ClusterError, match="clip durations"):
        Preparation(floor_s=100)
    with pytest.raises(ClusterError, match="shorter one first"):
        Preparation(shortest_s=5, longest_s=2)


def test_load_is_the_sum_over_classes_by_hand():
    """Three quarters of jobs take 2 GPUs for 10 s, a quarter 8 GPUs for 40 s: 15 + 80 GPU-seconds a job."""
    jobs = (*_jobs(2, 2, 2, duration=10.0), *_jobs(8, duration=40.0))
    assert load_of(jobs, mean_gap_s=5.0, cluster_gpus=19) == pytest.approx(95 / (5 * 19))
    assert load_of(jobs, mean_gap_for(jobs, 0.8, 512), 512) == pytest.approx(0.8)


def test_load_needs_durations():
    with pytest.raises(ClusterError, match="job 'a' has no duration"):
        load_of([TraceJob("a", 1, 0.0, iterations=5)], 1.0, 8)


def test_poisson_gaps_have_their_mean_and_deadlines_move_along():
    jobs = poisson([TraceJob(str(n), 1, 1000.0, 1.0, deadline_s=1010.0) for n in range(20_000)], 30.0, seed=2)
    gaps = np.diff([job.arrival_s for job in jobs])
    assert gaps.min() > 0
    assert gaps.mean() == pytest.approx(30, rel=0.03)
    assert gaps.std() == pytest.approx(30, rel=0.03)
    assert all(abs(job.deadline_s - job.arrival_s - 10) < 1e-6 for job in jobs)
