import pytest

from ropewalk.errors import StrategyError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.pipedream import Division, Level, pipedream, pipedream_stages
from ropewalk.pipeline.profile import from_states
from ropewalk.strategy.part import Part

EVEN = from_states("even", 1, forward_s=[1] * 4, backward_s=[1] * 4, parameter_bytes=[0] * 4)
HEAVY_END = from_states("heavy", 1, forward_s=[3, 3, 3, 1], backward_s=[0] * 4, parameter_bytes=[0, 0, 0, 1e12])


def test_states_without_weights_are_shared_by_everybody():
    assert pipedream(EVEN, [Level(4, 1e9)]) == (Division(0, 4, (4,)),)


def test_heavy_weights_get_a_gpu_of_their_own():
    assert pipedream(HEAVY_END, [Level(4, 1e9)]) == (Division(0, 3, (3,)), Division(3, 4, (1,)))


def test_hand_overs_count_unless_told_otherwise():
    large = from_states(
        "large", 1, forward_s=[1, 1], backward_s=[1, 1], parameter_bytes=[1e9] * 2, crossing_bytes=[1e12, 0]
    )
    assert len(pipedream(large, [Level(2, 1e9)])) == 1
    assert len(pipedream(large, [Level(2, 1e9)], sends=False)) == 2


def test_levels_divide_from_the_outside_in():
    stages = pipedream_stages(HEAVY_END, Machines(4, (2, 4)))
    assert stages == (Part(0, 1, (0, 1)), Part(2, 2, (2,)), Part(3, 3, (3,)))


def test_machines_of_different_sizes_are_refused():
    with pytest.raises(StrategyError, match="machines of one size"):
        pipedream_stages(EVEN, Machines(3, (1, 3)))
