"""The search of partition size and credit without Optuna."""

import sys

import pytest

from ropewalk.errors import StrategyError
from ropewalk.overlap import tuner
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.policy import Discipline, OverlapPolicy
from ropewalk.overlap.scheduler import step_seconds
from ropewalk.overlap.tensors import from_layers
from ropewalk.overlap.tuner import Trial, TunerSpace, bayesian, cost_of, exhaustive, space_of


def valley(partition_bytes: float, credit_bytes: float) -> float:
    return abs(partition_bytes - 4) + abs(credit_bytes - 8)


def test_the_grid_finds_the_lowest_point_it_holds_and_keeps_all_it_tried() -> None:
    found = exhaustive(valley, TunerSpace(1, 16, (1, 2, 4), partitions=5))
    assert found.best == Trial(4.0, 8.0, 0.0)
    assert len(found.trials) == 15
    assert found.method == "exhaustive: 5 partition sizes x 3 credits"


def test_of_equal_settings_the_largest_pieces_and_the_smallest_credit_win() -> None:
    assert exhaustive(lambda partition, credit: 1.0, TunerSpace(1, 16, (1, 2))).best == Trial(16.0, 16.0, 1.0)


def test_the_cost_is_the_step_of_the_scheduler_with_everything_else_as_given() -> None:
    tensors = from_layers([3, 6, 3], backward_s=[2, 2, 2], forward_s=[2, 2, 2])
    link = Link(1.0, 0.25)
    assert cost_of(tensors, link)(2, 0) == 18.5
    in_turn = OverlapPolicy(discipline=Discipline.FIFO, barrier=True)
    assert cost_of(tensors, link, in_turn)(2, 0) == step_seconds(
        tensors, link, OverlapPolicy(2, 0, Discipline.FIFO, barrier=True)
    )


def test_the_figure_has_its_valley_at_pieces_of_two_when_a_start_up_costs_a_quarter() -> None:
    tensors = from_layers([3, 6, 3], backward_s=[2, 2, 2], forward_s=[2, 2, 2])
    found = exhaustive(cost_of(tensors, Link(1.0, 0.25)), TunerSpace(1, 6, (1 / 64,), partitions=6))
    assert found.best.step_s == 18.5
    assert found.policy(OverlapPolicy(barrier=True)) == OverlapPolicy(2.0, 2 / 64, barrier=True)


def test_the_space_of_a_model_ends_at_its_largest_tensor() -> None:
    small = from_layers([1000, 5000], backward_s=[1, 1], forward_s=[1, 1])
    assert (space_of(small).smallest_bytes, space_of(small).largest_bytes) == (5000, 5000)
    large = from_layers([1e9], backward_s=[1], forward_s=[1])
    assert (space_of(large).smallest_bytes, space_of(large).largest_bytes) == (tuner.SMALLEST_BYTES, 1e9)


def test_asking_for_optuna_where_there_is_none_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(StrategyError, match=r'pip install "ropewalk\[tune\]"'):
        bayesian(valley, TunerSpace(1, 16))


def test_spaces_without_a_setting_are_refused() -> None:
    with pytest.raises(StrategyError, match="3 findings"):
        TunerSpace(4, 2, (), partitions=0)
    with pytest.raises(StrategyError, match="nothing to cut"):
        space_of(from_layers([0], backward_s=[1], forward_s=[1]))
    with pytest.raises(StrategyError, match="give 1 or more"):
        bayesian(valley, TunerSpace(1, 16), trials=0)


def test_tuning_a_parameter_server_ends_between_start_ups_and_blocking() -> None:
    """Tensors of 100 MB at 1 GB/s: the best piece is neither the smallest of the grid nor the whole tensor."""
    tensors = from_layers([1e8] * 4, backward_s=[0.05] * 4, forward_s=[0.05] * 4)
    link = Link(1e9, 1e-3, kind=ExchangeKind.PARAMETER_SERVER)
    space = space_of(tensors)
    best = exhaustive(cost_of(tensors, link), space).best
    assert space.smallest_bytes < best.partition_bytes < space.largest_bytes
