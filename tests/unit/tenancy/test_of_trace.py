"""Jobs of a trace as something that can run: published shares, bytes computed back, and what is refused."""

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.of_trace import jobs_of
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.published_shares import EXPERT_SHARES, SHARES, shares_of
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.traces import Mix, Synthetic, TraceJob

SMALL = plant("leaf-spine:4x4x4", gpus_per_server=2)


def traced(name="a", **more):
    return TraceJob(name, **({"gpus": 8, "arrival_s": 0.0, "duration_s": 100.0, "iterations": 50} | more))


@pytest.mark.parametrize("collective", ["ring", "hierarchical-ring", "halving-doubling", "all-to-all"])
def test_on_a_quiet_network_a_job_lasts_as_long_as_its_trace_says(collective):
    job = traced(collective=collective, communication_share=0.3)
    found = jobs_of([job], SMALL)
    (run,) = answer(ClusterQuestion(SMALL, found, [POLICIES["ideal"]], Conditions())).timelines
    assert run.jobs[0].jrt_s == pytest.approx(100.0)
    assert found[0].work.compute_s == pytest.approx(1.4)


def test_the_nearest_published_batch_counts_and_relatives_have_the_shares_of_their_kin():
    assert shares_of("VGG16", 20) == {"hierarchical-ring": SHARES["vgg16"][16]}
    assert shares_of("roberta", 4) == {"hierarchical-ring": SHARES["bert"][16]}
    assert shares_of("pangu", None) == dict(
        zip(("hierarchical-ring", "all-to-all"), EXPERT_SHARES["pangu"], strict=True)
    )
    assert shares_of("nobody-knows", 4) is None


def test_a_mixture_of_experts_has_both_of_its_exchanges():
    (job,) = jobs_of([traced(model="pangu", collective="all-to-all")], SMALL)
    assert [one.collective for one in job.work.exchanges] == ["hierarchical-ring", "all-to-all"]
    assert job.work.compute_s == pytest.approx(2.0 * (1 - 0.0737 - 0.258))


def test_one_gpu_sends_nothing_and_spelled_out_work_is_taken_as_it_is():
    alone, told = jobs_of(
        [traced(gpus=1, model="vgg16"), traced("b", compute_s=0.5, volume_bytes=10, collective="ring")], SMALL
    )
    assert alone.work.exchanges == ()
    assert alone.work.compute_s == pytest.approx(2.0)
    assert (told.work.compute_s, told.work.exchanges[0].size_bytes) == (0.5, 10)


def test_a_model_with_a_number_of_steps_is_lowered_as_simulate_would():
    (job,) = jobs_of([traced(duration_s=None, model="vgg16", batch=16, iterations=7)], SMALL)
    assert job.iterations == 7
    assert job.split
    assert job.work.exchanges


def test_split_models_meet_in_groups_of_their_own_and_a_duration_is_as_many_steps_as_fit():
    split = traced(gpus=16, iterations=None, model="gpt2", tensor=2, pipeline=4, batch=8, device="a100")
    (job,) = jobs_of([split], SMALL)
    assert {(one.collective, one.group) for one in job.work.exchanges} >= {("hierarchical-ring", 2), ("pipeline", 4)}
    (run,) = answer(ClusterQuestion(SMALL, [job], [POLICIES["ideal"]], Conditions())).timelines
    assert run.jobs[0].jrt_s == pytest.approx(100.0, rel=0.02)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tensor": 2}, "fill in model"),
        ({"tensor": 3, "model": "gpt2", "iterations": None}, "does not divide 8 GPUs"),
        ({"duration_s": None, "model": "gpt2", "collective": "gossip"}, "no collective 'gossip'"),
    ],
)
def test_models_that_cannot_be_lowered_are_named_with_their_job(wrong, says):
    with pytest.raises(ClusterError, match=f"job 'a': .*{says}"):
        jobs_of([traced(**wrong)], SMALL)


def test_jobs_without_a_model_get_one_from_the_published_mix_and_always_the_same():
    jobs = [traced(f"j{number}") for number in range(20)]
    first, again, other = (jobs_of(jobs, SMALL, mix=Mix(), seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert len({job.work.exchanges[0].collective for job in first}) > 1


def test_a_trace_with_iterations_alone_needs_the_time_of_one():
    bare = traced(duration_s=None, communication_share=0.2)
    with pytest.raises(ClusterError, match=r"'a': it has no duration.*--iteration-time"):
        jobs_of([bare], SMALL)
    (job,) = jobs_of([bare], SMALL, iteration_s=0.25)
    assert job.iterations == 50


def test_all_mistakes_are_told_together():
    with pytest.raises(ClusterError) as told:
        jobs_of([traced(collective="smoke"), traced("b", collective="mirrors")], SMALL, mix=Mix())
    assert "smoke" in str(told.value)
    assert "mirrors" in str(told.value)


def test_a_synthetic_trace_becomes_jobs_that_fit_their_cluster():
    jobs = Synthetic(jobs=30, cluster_gpus=SMALL.gpus, load=0.5, seed=2).build()
    found = jobs_of(jobs, SMALL)
    assert max(job.gpus for job in found) <= SMALL.gpus
    assert sum(job.iterations for job in found) == sum(job.iterations for job in jobs)
