"""Small worlds in which pieces, priorities, credit and barriers can be followed by hand."""

from dataclasses import replace
from math import inf

import pytest

from ropewalk.errors import StrategyError
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.policy import (
    CreditReturn,
    CreditWindow,
    Discipline,
    OverlapPolicy,
    byteps,
    fifo,
    released_bytescheduler,
)
from ropewalk.overlap.scheduler import cut, schedule
from ropewalk.overlap.tensors import from_layers

WIRE, SERVER = Link(1.0), Link(1.0, kind=ExchangeKind.PARAMETER_SERVER)


def test_a_tensor_is_cut_into_full_pieces_and_a_rest() -> None:
    tensors = from_layers([5, 0, 4], backward_s=[1, 1, 1], forward_s=[1, 1, 1])
    pieces = cut(tensors, OverlapPolicy(2))
    assert pieces.tensor.tolist() == [0, 0, 0, 1, 2, 2]
    assert pieces.number.tolist() == [0, 1, 2, 0, 0, 1]
    assert pieces.size_bytes.tolist() == [2.0, 2.0, 1.0, 0.0, 2.0, 2.0]
    assert cut(tensors, OverlapPolicy(2, discipline=Discipline.FIFO)).tensor.tolist() == [2, 2, 1, 0, 0, 0]


def test_an_urgent_tensor_waits_for_the_credit_handed_out_before_it_not_for_one_piece() -> None:
    """A late small tensor that is needed first; a large one has been waiting in pieces of 1 since second 1."""
    tensors = from_layers([1, 8], backward_s=[2, 1], forward_s=[1, 1])
    waits = [float(schedule(tensors, WIRE, OverlapPolicy(1, credit)).available_s[0]) for credit in (0, 1, 2, 4, inf)]
    assert waits == [4.0, 4.0, 5.0, 7.0, 10.0]


def test_a_window_of_two_pieces_hides_the_round_trip_that_stop_and_wait_pays() -> None:
    tensors = from_layers([4], backward_s=[1], forward_s=[1])
    far = replace(WIRE, latency_s=1.0)
    assert schedule(tensors, far, OverlapPolicy(1)).available_s.tolist() == [9.0]
    assert schedule(tensors, far, OverlapPolicy(1, 2)).available_s.tolist() == [6.0]


def test_credit_may_be_overdrawn_by_one_piece_or_the_piece_is_passed_over() -> None:
    """Credit 4: after a piece of 3 one unit is left. The next in line has 3, the one behind it 1."""
    tensors = from_layers([3, 3, 1], backward_s=[0, 0, 1], forward_s=[1, 1, 1])
    overdrawn = schedule(tensors, WIRE, OverlapPolicy(inf, 4))
    passed_over = schedule(tensors, WIRE, OverlapPolicy(inf, 4, window=CreditWindow.SKIP))
    assert overdrawn.pieces.tensor[overdrawn.order].tolist() == [0, 1, 2]
    assert passed_over.pieces.tensor[passed_over.order].tolist() == [0, 2, 1]
    assert passed_over.available_s.tolist() == [4.0, 8.0, 5.0]


def test_credit_that_returns_with_the_pull_leaves_the_way_out_idle() -> None:
    tensors = from_layers([4], backward_s=[1], forward_s=[1])
    designed = schedule(tensors, SERVER, OverlapPolicy(1))
    released = schedule(tensors, SERVER, OverlapPolicy(1, credit_return=CreditReturn.PULL))
    assert designed.push_start_s.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert released.push_start_s.tolist() == [1.0, 3.0, 5.0, 7.0]
    assert (designed.step_s, released.step_s) == (7.0, 10.0)


def test_without_a_barrier_a_layer_starts_while_later_ones_are_still_synchronised() -> None:
    tensors = from_layers([1, 4], backward_s=[1, 1], forward_s=[3, 1])
    assert schedule(tensors, WIRE, OverlapPolicy(1)).forward_start_s.tolist() == [3.0, 6.0]
    assert schedule(tensors, WIRE, OverlapPolicy(1, barrier=True)).forward_start_s.tolist() == [6.0, 9.0]


def test_what_is_exposed_is_what_a_step_takes_beyond_its_computation() -> None:
    tensors = from_layers([3], backward_s=[2], forward_s=[5])
    assert schedule(tensors, WIRE, fifo()).exposed_s == 3.0
    assert schedule(from_layers([0], backward_s=[2], forward_s=[5]), WIRE, fifo()).exposed_s == 0.0


def test_a_run_of_steps_begins_with_a_forward_pass_and_ends_with_the_last_tensor() -> None:
    run = schedule(from_layers([3], backward_s=[2], forward_s=[5]), WIRE, fifo())
    assert [run.seconds_of(steps) for steps in (1, 2, 3)] == [10.0, 20.0, 30.0]
    with pytest.raises(StrategyError, match="give 1 or more"):
        run.seconds_of(0)


def test_released_sizes_count_elements_and_the_others_bytes() -> None:
    released = released_bytescheduler()
    assert (released.partition_bytes, released.credit_bytes) == (4e6, 16e6)
    assert released.credit_return is CreditReturn.PULL
    designed = OverlapPolicy(4e6, 16e6)
    assert (designed.partition_bytes, designed.credit_return) == (4e6, CreditReturn.PUSH)
    assert byteps(credits=4).credit_bytes == 4 * 4_096_000
    assert byteps().credit_bytes == inf


def test_policies_that_let_nothing_pass_are_refused() -> None:
    for partition in (0.0, -1.0, float("nan")):
        with pytest.raises(StrategyError, match="give a positive partition size"):
            OverlapPolicy(partition)
    with pytest.raises(StrategyError, match="is negative"):
        OverlapPolicy(1.0, -1.0)
    with pytest.raises(StrategyError, match="never fits a credit of 2: give a credit of at least one piece"):
        OverlapPolicy(4.0, 2.0, window=CreditWindow.SKIP)
    whole = from_layers([9], backward_s=[1], forward_s=[1])
    with pytest.raises(StrategyError, match="a piece of 9 bytes never fits a credit of 4 bytes"):
        schedule(whole, WIRE, OverlapPolicy(inf, 4, window=CreditWindow.SKIP))


def test_a_partition_size_that_is_a_slip_of_units_is_refused_before_memory_is() -> None:
    large = from_layers([1e12], backward_s=[1], forward_s=[1])
    with pytest.raises(StrategyError, match=r"into 1e\+12: give a partition size of 2.5e\+05 bytes or more"):
        schedule(large, WIRE, OverlapPolicy(1.0))
