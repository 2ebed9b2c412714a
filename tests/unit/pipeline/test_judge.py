import numpy as np
import pytest

from ropewalk.pipeline.contest import Contest, least_seconds, with_pieces
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, Unfit, judge
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.schedules import searched
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.part import Part
from ropewalk.timetable.named import TIMETABLES

FOUR = from_states(
    "four", 1, forward_s=[1] * 4, backward_s=[2] * 4, parameter_bytes=[10] * 4, kept_bytes=[100] * 4
)  # fmt: skip
ONE_EACH = tuple(Part(state, state, (state,)) for state in range(4))


def judged(schedule: str, memory=None, recompute=False, weight_share=0.5, stages=ONE_EACH) -> Judged | Unfit:
    terms = Terms(8, 1, memory_bytes=memory, weight_share=weight_share)
    return judge(Costs(FOUR, Machines(4, (1, 2, 3, 4)), terms), PipelinePlan(stages, schedule, 1, 8, recompute))


def test_four_equal_stages_take_eleven_turns_and_keep_what_is_in_flight():
    shallow, deep, gpipe = (judged(name) for name in ("1f1b", "1f1b-deep", "gpipe"))
    assert shallow.step_s == deep.step_s == gpipe.step_s == 33
    assert shallow.memory_bytes == (440, 340, 240, 140)
    assert deep.memory_bytes == (740, 540, 340, 140)
    assert gpipe.memory_bytes == (840, 840, 840, 840)


def test_average_memory_counts_how_long_micro_batches_are_kept():
    """Of 33 turns the last stage works 24, and keeps one micro-batch all the while."""
    assert judged("1f1b").average_memory_bytes[3] == pytest.approx(40 + 100 * 24 / 33)
    # GPipe: forward i of the last stage starts at 3 + i and its backward pass ends at 11 + 2 (i + 1) in some order.
    assert judged("gpipe").average_memory_bytes[3] == pytest.approx(
        40 + 100 * (sum(11 + 2 * (i + 1) for i in range(8)) - sum(3 + i for i in range(8))) / 33
    )
    # Computed again, only the input of the piece is kept meanwhile; it is empty here.
    again = judged("1f1b", recompute=True)
    assert again.average_memory_bytes[3] == pytest.approx(40 + 100 * again.run.busy[3] * 3 / 4 / again.step_s)
    for name in ("1f1b", "gpipe", "zb-h1", "zb-h2"):
        found = judged(name)
        assert all(40 < mean <= most for mean, most in zip(found.average_memory_bytes, found.memory_bytes, strict=True))


def test_the_bubble_shrinks_by_a_third_where_gradients_of_weights_are_put_off():
    assert judged("zb-h1").step_s == 27


def test_memory_shortens_the_warm_up():
    full, tight = judged("1f1b"), judged("1f1b", memory=240)
    assert tight.memory_bytes == (240, 240, 240, 140)
    assert tight.step_s > full.step_s


def test_a_schedule_that_needs_all_micro_batches_does_not_fit():
    found = judged("gpipe", memory=400)
    assert isinstance(found, Unfit)
    assert "needs 0.0 GB" in found.reason


def test_what_does_not_fit_at_all_says_which_stage():
    found = judged("1f1b", memory=50)
    assert isinstance(found, Unfit)
    assert found.reason.startswith("stage 0 of straight needs")


def test_recomputation_keeps_inputs_and_room_for_one_micro_batch():
    found = judged("1f1b", recompute=True)
    assert found.step_s == 44
    assert found.memory_bytes == (140, 140, 140, 140)  # nothing crosses, so nothing is kept for later


def test_two_pieces_a_device_have_to_be_where_the_timetable_wants_them():
    valley = tuple(Part(at, at, (home,)) for at, home in enumerate((0, 1, 1, 0)))
    loop = tuple(Part(at, at, (home,)) for at, home in enumerate((0, 1, 0, 1)))
    assert isinstance(judged("zb-v", stages=valley), Judged)
    assert isinstance(judged("interleaved", stages=loop), Judged)
    for schedule, stages in (("zb-v", loop), ("interleaved", valley), ("1f1b", valley), ("zb-v", ONE_EACH)):
        assert isinstance(judged(schedule, stages=stages), Unfit)


def test_two_copies_put_the_first_and_the_last_stage_on_the_same_gpus():
    """Stage 1 takes twice as long alone as stage 0 on two GPUs, which are held up by half of it."""
    states = from_states("two", 2, forward_s=[2, 2], backward_s=[4, 4], parameter_bytes=[10, 30], kept_bytes=[100, 60])
    costs = Costs(states, Machines(3, (1, 2, 3)), Terms(16, 2))
    found = judge(costs, PipelinePlan((Part(0, 0, (0, 1)), Part(1, 1, (2,))), "dualpipe", 2, 8))
    assert found.run.times.forward.tolist() == [1, 2, 2, 1]
    assert found.loads.tolist() == [3, 0, 6]
    assert found.bottleneck == 2
    weights = 4 * (10 + 30)
    kept = found.run.timetable.peak_kept(np.array([50.0, 60, 100, 30]))
    assert found.memory_bytes == tuple(weights + kept)
    assert 8 * 6 <= found.step_s < 9 * 6


def test_opposite_stages_of_two_copies_are_split_alike():
    found = judged("dualpipe", stages=(Part(0, 1, (0, 1), 2), Part(2, 3, (2, 3))))
    assert found == Unfit("dualpipe places opposite stages on the same GPUs, so both need the same tensor degree")


def test_a_timetable_made_for_the_times_is_no_worse_than_those_made_by_hand():
    assert judged("zb-auto").step_s <= min(judged("zb-h1").step_s, judged("zb-h2").step_s)
    tight = judged("zb-auto", memory=440)
    assert max(tight.memory_bytes) <= 440


def test_bounds_are_below_every_timetable():
    for schedule in TIMETABLES:
        homes = {"interleaved": (0, 1, 0, 1), "zb-v": (0, 1, 1, 0), "dualpipev": (0, 1, 1, 0)}
        stages = tuple(Part(at, at, (home,)) for at, home in enumerate(homes.get(schedule, (0, 1, 2, 3))))
        found = judged(schedule, stages=stages)
        assert least_seconds(found.run.times, found.plan) <= found.step_s


def test_a_contest_remembers_the_best_of_all_and_of_every_schedule():
    contest = Contest(Costs(FOUR, Machines(4, (1, 2, 3, 4)), Terms(8, 1)))
    found = contest.enter(PipelinePlan(ONE_EACH, "1f1b", 1, 8), with_pieces(searched(), 1))
    assert found is contest.best
    assert set(contest.best_by_schedule) <= set(with_pieces(searched(), 1))
    assert contest.best_by_schedule["1f1b"].step_s == 33 > contest.best_s
    assert contest.enter(PipelinePlan(ONE_EACH, "1f1b", 1, 8), ("1f1b",), within=20) is None


def test_the_bottleneck_is_a_stage_or_a_cut():
    slow_cut = from_states(
        "cut", 1, forward_s=[1, 1], backward_s=[1, 1], parameter_bytes=[0, 0], crossing_bytes=[5e9, 0]
    )
    costs = Costs(slow_cut, Machines(2, (1, 2)), Terms(4, 1))
    found = judge(costs, PipelinePlan((Part(0, 0, (0,)), Part(1, 1, (1,))), "1f1b", 1, 4))
    assert found.bottleneck == 1
    assert found.exposed_sums_s == pytest.approx(0)
