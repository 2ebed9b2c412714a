"""What a plan is measured against."""

from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.terms import Terms


def test_one_gpu_runs_all_samples_at_the_price_of_the_whole_batch():
    tiny = from_states("tiny", 2, forward_s=[1, 1], backward_s=[2, 2], parameter_bytes=[0, 0])
    answer = plan(tiny, Machines(4, (2, 4)), Terms(8, 2, schedules=("1f1b",)))
    assert answer.single_gpu_s == 24.0
    assert answer.as_json()["speedup_over_one_gpu"] == 24.0 / answer.step_s <= 4.0
