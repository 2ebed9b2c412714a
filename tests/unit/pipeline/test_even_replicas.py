"""Plans for runtimes that need as many replicas for every stage."""

from itertools import combinations, product

import pytest

from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.even_replicas import best_with_even_replicas
from ropewalk.pipeline.judge import Judged, judge
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.part import Part

FALLING = from_states(
    "falling", 4, forward_s=[8e-3, 4e-3, 2e-3, 1e-3, 1e-3, 1e-3], backward_s=[16e-3, 8e-3, 4e-3, 2e-3, 2e-3, 2e-3],
    parameter_bytes=[1e5, 1e5, 1e6, 1e6, 4e8, 4e8], crossing_bytes=[9e7, 4e7, 9e6, 2e6, 1e6, 0],
    kept_bytes=[4e7, 2e7, 1e7, 5e6, 1e6, 1e6],
)  # fmt: skip
TWO_OF_TWO = Machines(4, (2, 4), 1e9, 1e9, 25e9, switched=True)


def every_even_plan(costs):
    """All cuts, on consecutive GPUs."""
    states, gpus, terms = costs.states, costs.machines.gpus, costs.terms
    for devices in range(2, gpus + 1):
        each = gpus // devices
        for inner in combinations(range(1, states), devices - 1):
            bounds = (0, *inner, states)
            stages = tuple(
                Part(bounds[at], bounds[at + 1] - 1, tuple(range(at * each, (at + 1) * each)))
                for at in range(devices)
            )  # fmt: skip
            for size, schedule in product(terms.micro_batch_sizes(), terms.schedules):
                yield PipelinePlan(stages, schedule, size, terms.global_batch // size)


@pytest.mark.parametrize("batch", [16, 32])
@pytest.mark.parametrize("memory", [None, 5e9])
def test_no_even_plan_of_a_small_model_is_faster(batch, memory):
    terms = Terms(batch, 4, memory_bytes=memory, schedules=("1f1b", "1f1b-deep", "gpipe", "zb-h1"))
    costs = Costs(FALLING, TWO_OF_TWO, terms)
    every = [judge(costs, entry) for entry in every_even_plan(costs)]
    least = min(judged.step_s for judged in every if isinstance(judged, Judged))
    found = best_with_even_replicas(costs)
    assert found is not None
    assert len(found.plan.stages) >= 2
    assert len(set(found.plan.replicas)) == 1
    assert found.step_s == pytest.approx(least)


def test_it_is_no_faster_than_a_plan_with_any_replicas():
    terms = Terms(32, 4)
    found = best_with_even_replicas(Costs(FALLING, TWO_OF_TWO, terms))
    assert found is not None
    assert found.step_s >= plan(FALLING, TWO_OF_TWO, terms).step_s * (1 - 1e-9)


def test_only_schedules_that_were_asked_for_are_used():
    fitted = best_with_even_replicas(Costs(FALLING, TWO_OF_TWO, Terms(32, 4, schedules=("zb-auto",))))
    assert fitted is not None
    assert fitted.plan.schedule == "zb-auto"
    assert best_with_even_replicas(Costs(FALLING, TWO_OF_TWO, Terms(32, 4, schedules=("zb-v",)))) is None


def test_one_gpu_has_no_pipeline():
    assert best_with_even_replicas(Costs(FALLING, Machines(1, (1,)), Terms(8, 4))) is None
