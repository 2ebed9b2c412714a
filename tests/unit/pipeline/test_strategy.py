"""Plans of the planner as strategies, and as steps."""

import pytest

from ropewalk.device.numbers import Numbers
from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError
from ropewalk.hardware import read_cluster
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import judge
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.profile import profile_of
from ropewalk.pipeline.strategy import strategy_of
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy import KeptPrices, Part, Placement, check, cut, memory, shares_of
from ropewalk.task.lower import lower
from ropewalk.task.step import Act
from ropewalk.timetable import timetable
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, chain

FLOAT = pricer(precision_name="fp32")


def model(batch=4):
    """Six measured layers; times and activations grow with the samples."""
    layers = [
        Layer(f"layer {at}", (Measured(at * batch * 1e-3, 2 * at * batch * 1e-3, 1000 * at, 64.0 * batch),), 16 * batch)
        for at in range(1, 7)
    ]
    return chain("measured", layers, batch=batch, resize=model)


def judged(plan, **terms):
    costs = Costs(profile_of(model()), Machines(8, (4, 8)), Terms(plan.global_batch, 4, **terms))
    return judge(costs, plan)


THREE_TO_ONE = (Part(0, 3, (0, 1, 2, 3)), Part(4, 5, (4,)))


def test_stages_become_parts_with_their_gpus():
    strategy = strategy_of(judged(PipelinePlan(THREE_TO_ONE, "1f1b", 4, 8)), model(), "sgd")
    assert strategy.parts == (Part(0, 3, (0, 1, 2, 3)), Part(4, 5, (4,)))
    assert (strategy.schedule, strategy.rows, strategy.optimiser) == ("1f1b", (), "sgd")
    assert strategy.global_batch == 32
    check(strategy, model(), 8)


def test_data_parallelism_becomes_its_degree():
    strategy = strategy_of(judged(PipelinePlan((Part(0, 5, tuple(range(4)), 2),), "gpipe", 4, 8)), model())
    assert (strategy.data, strategy.tensor, strategy.micro_batch, strategy.parts) == (2, 2, 2, ())
    odd = strategy_of(judged(PipelinePlan((Part(0, 5, (0, 1, 2)),), "1f1b", 4, 8)), model())
    assert odd.parts == (Part(0, 5, (0, 1, 2)),)


def test_a_timetable_that_was_made_for_the_plan_goes_along():
    plan = PipelinePlan((Part(0, 4, (0,)), Part(5, 5, (1, 2, 3, 4))), "1f1b", 4, 8)
    strategy = strategy_of(judged(plan, memory_bytes=max(judged(plan).memory_bytes) - 1.0), model())
    assert strategy.rows
    assert strategy.timetable.peak_live[0] < timetable("1f1b", 2, 8).peak_live[0]
    fitted = strategy_of(judged(PipelinePlan(THREE_TO_ONE, "zb-auto", 4, 8)), model())
    assert fitted.splits_backward
    check(fitted, model(), 8)


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "gpipe", "dualpipe"])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_step_of_a_plan_computes_what_the_planner_counted(schedule, recompute):
    found = judged(PipelinePlan(THREE_TO_ONE, schedule, 4, 8, recompute))
    strategy = strategy_of(found, model())
    step = lower(model(), strategy, Placement(strategy), FLOAT, "layer")
    for stage, rank in enumerate((0, 4)):
        mine = (step.act == Act.COMPUTE) & (step.rank == rank)
        update = step.labels.index("update")
        seconds = step.amount[mine & (step.label != update)].sum()
        assert seconds == pytest.approx(8 * found.loads[2 * stage], rel=1e-9)


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "gpipe", "dualpipe"])
@pytest.mark.parametrize("recompute", [False, True])
def test_planner_and_strategy_count_the_same_memory(schedule, recompute):
    """But for the workspace and what the allocator wastes, which only the strategy knows."""
    found = judged(PipelinePlan(THREE_TO_ONE, schedule, 4, 8, recompute))
    strategy = strategy_of(found, model())
    shares = shares_of(model(), strategy)
    needed = memory(strategy, shares, cut(model(), strategy, shares, KeptPrices(FLOAT)), Numbers(4.0))
    counted = needed.weights + needed.gradients + needed.optimiser + needed.activations
    assert counted.tolist() == pytest.approx(list(found.memory_bytes))


def test_interleaved_pieces_are_parts_of_their_own():
    pieces = (Part(0, 1, (0,)), Part(2, 2, (2,)), Part(3, 4, (0,)), Part(5, 5, (2,)))
    strategy = strategy_of(judged(PipelinePlan(pieces, "interleaved", 4, 8)), model())
    assert (strategy.pipeline, strategy.interleave, len(strategy.parts)) == (2, 2, 4)
    check(strategy, model(), 3)


def test_stages_with_as_many_replicas_become_degrees_that_take_as_long():
    pieces = (Part(0, 1, (0, 1)), Part(2, 2, (2, 3)), Part(3, 4, (0, 1)), Part(5, 5, (2, 3)))
    even = strategy_of(judged(PipelinePlan(pieces, "interleaved", 4, 8)), model(), gpus=4)
    assert (even.data, even.pipeline, even.interleave, even.stages, even.parts) == (2, 2, 2, (0, 2, 3, 5), ())
    assert (even.micro_batch, even.global_batch) == (2, 32)
    some = strategy_of(judged(PipelinePlan(pieces, "interleaved", 4, 8)), model(), gpus=8)
    assert some.parts == pieces
    cluster = read_cluster("2x2")
    steps = [
        QuickSteps(TrainingQuestion(model(), cluster, precision="fp32")).run(strategy).step_time_s
        for strategy in (even, some)
    ]
    assert steps[0] == pytest.approx(steps[1], rel=1e-9)


def test_plans_over_other_states_than_layers_are_refused():
    with pytest.raises(StrategyError, match="cuts 6 states, but short has 1 layers"):
        strategy_of(judged(PipelinePlan(THREE_TO_ONE, "1f1b", 4, 8)), chain("short", [model().layers[0]], batch=4))
