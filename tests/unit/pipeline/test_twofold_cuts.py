"""Where timetables with two chunks per device cut the model."""

import pytest

from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.twofold import twofold_plans

MODEL = from_states(
    "lumpy",
    1,
    forward_s=[1.0] * 8,
    backward_s=[2.0] * 8,
    parameter_bytes=[0.0] * 8,
    crossing_bytes=[1e9, 1e12, 1e9, 1e9, 1e9, 1e9, 1e9, 0.0],
)
"""Even pieces of two states would hand a terabyte over behind the second."""


@pytest.mark.parametrize("schedule", ["interleaved", "zb-v"])
def test_pieces_are_also_cut_where_little_crosses(schedule):
    costs = Costs(MODEL, Machines(2, (1, 2)), Terms(4, 1, schedules=(schedule,)))
    cuts = [[stage.last for stage in plan.stages[:-1]] for plan in twofold_plans(costs, schedule, 1, False)]
    assert [1, 3, 5] in cuts
    assert any(1 not in ends for ends in cuts)


def test_pieces_on_the_same_gpus_hand_nothing_over():
    costs = Costs(MODEL, Machines(2, (1, 2)), Terms(4, 1))
    entering = costs.entering([(0,), (1,), (1,), (0,)], 1)
    assert entering[0].max() == entering[2].max() == 0.0
    assert entering[1, 2] == entering[3, 2] == pytest.approx(entering[1, 1] * 1000, rel=1e-3)
