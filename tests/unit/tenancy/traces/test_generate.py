from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces import DURATIONS, SIZES, Durations, Mix, Synthetic, load_of, to_csv

SMALL = Synthetic(jobs=2000, cluster_gpus=512, load=0.8, seed=7)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    assert to_csv(SMALL.build()) == to_csv(replace(SMALL).build())
    assert to_csv(SMALL.build()) != to_csv(replace(SMALL, seed=8).build())


def test_the_load_is_what_was_asked_for():
    jobs = SMALL.build()
    gap = np.mean(np.diff([0.0, *(job.arrival_s for job in jobs)]))
    assert load_of(jobs, gap, 512) == pytest.approx(0.8, rel=0.08)  # Poisson: 1/sqrt(2000) is 2.2 %


def test_sizes_follow_the_histogram_and_fit_the_cluster():
    jobs = SMALL.build()
    assert np.mean([job.gpus == 1 for job in jobs]) == pytest.approx(0.3951, abs=0.04)
    few = replace(SMALL, cluster_gpus=64).build()
    assert max(job.gpus for job in few) == 64
    assert np.mean([job.gpus == 64 for job in few]) == pytest.approx(0.0544, abs=0.02)


def test_changing_durations_leaves_sizes_as_they_were():
    other = replace(SMALL, durations=DURATIONS["philly"])
    assert [job.gpus for job in other.build()] == [job.gpus for job in SMALL.build()]


def test_durations_have_their_median_and_mean():
    drawn = Durations("x", 100.0, 200.0).draw(np.random.default_rng(0), 200_000)
    assert np.median(drawn) == pytest.approx(100, rel=0.02)
    assert drawn.mean() == pytest.approx(200, rel=0.03)
    clipped = Durations("x", 100.0, 200.0, 50.0, 400.0).draw(np.random.default_rng(0), 1000)
    assert (clipped.min(), clipped.max()) == (50, 400)


def test_half_of_powers_of_two_run_halving_doubling_and_other_sizes_rings():
    mix = Mix()
    drawn = [mix.draw(0, number, 64) for number in range(4000)]
    share = {name: np.mean([one == name for one, _ in drawn]) for name in ("halving-doubling", "ring", "all-to-all")}
    assert share == pytest.approx({"halving-doubling": 0.5, "ring": 0.2, "all-to-all": 0.3}, abs=0.03)
    assert all(model == "pangu" for one, (model, _) in drawn if one == "all-to-all")
    assert {mix.draw(0, number, 192)[0] for number in range(100)} == {"ring"}


def test_a_longer_trace_begins_with_the_same_models():
    short, long = replace(SMALL, jobs=5).build(), replace(SMALL, jobs=6).build()
    assert [job.gpus for job in short] == [job.gpus for job in long[:5]]
    assert [(job.model, job.collective) for job in short] == [(job.model, job.collective) for job in long[:5]]


def test_deadlines_leave_the_slack():
    for job in replace(SMALL, jobs=50, slack=3.0).build():
        factor = (job.deadline_s - job.arrival_s) / job.duration_s
        assert 1 - 1e-6 <= factor <= 3 + 1e-6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"jobs": 0}, "is empty"),
        ({"load": None}, "exactly one"),
        ({"mean_gap_s": 5.0}, "exactly one"),
        ({"load": -1.0}, "load must be above 0, got -1"),
        ({"slack": 0.5}, "slack"),
        ({"iteration_s": 0.0}, "iteration"),
        ({"seed": -1}, "seed"),
    ],
)
def test_impossible_traces_are_refused(wrong, message):
    with pytest.raises(ClusterError, match=message):
        replace(SMALL, **wrong).build()


def test_impossible_mixes_and_durations_are_refused():
    with pytest.raises(ClusterError, match="at most 1 together"):
        Mix(halving_doubling=0.9, ring=0.2)
    with pytest.raises(ClusterError, match="mean of at least its median"):
        Durations("x", 10.0, 5.0)
    with pytest.raises(ClusterError, match="ascending"):
        replace(SIZES["histogram-10000"], gpus=(2, 1, 4, 8, 16, 32, 64, 128, 256))
