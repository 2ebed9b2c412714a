"""Steps of seated layers: who computes when, who sends what to whom, when weights are summed."""

import numpy as np
import pytest
from tiny_seats import FlopPrices, priced, recommender, stacked, with_experts

from ropewalk.errors import StrategyError
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.seating import Manner, Seat, Seating, strategy_of
from ropewalk.strategy.server import Server
from ropewalk.task.lower import lower
from ropewalk.task.lower.seats import SUMS, lower_priced
from ropewalk.task.step import Act


def names(step, act, rank=None):
    at = np.flatnonzero((step.act == act) & (True if rank is None else step.rank == rank))
    return [step.name_of(operation) for operation in at]


def waits_for(step, operation):
    return step.dep[step.dep_start[operation] : step.dep_start[operation + 1]].tolist()


def test_a_server_computes_its_layers_in_order_and_back_and_updates_last():
    step = lower_priced(priced(stacked()), Seating(2, (Seat((0, 1)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 0) == ["dense 0 forward", "dense 0 backward", "update"]
    assert names(step, Act.COMPUTE, 1) == [
        "dense 0 forward", "dense 1 forward", "dense 1 backward", "dense 0 backward", "update",
    ]  # fmt: skip


def test_activations_go_forward_and_gradients_come_back_along_the_same_pairs():
    step = lower_priced(priced(stacked()), Seating(2, (Seat((0, 1)), Seat((1,)))))
    sends = np.flatnonzero(step.act == Act.SEND)
    ends = [(int(step.rank[op]), int(step.peer[op]), float(step.amount[op])) for op in sends]
    half = 48 / 2 * 32 * 4
    assert ends == [(0, 1, half), (1, 0, half)]


def test_layers_that_sit_alike_send_nothing():
    step = lower_priced(priced(stacked()), Seating(3, (Seat((0, 1, 2)),) * 2))
    assert names(step, Act.SEND) == []
    assert names(step, Act.ALL_REDUCE) == ["dense 1 sum", "dense 0 sum"]


def test_a_sum_waits_for_the_backward_pass_of_all_and_for_the_sum_before_it():
    step = lower_priced(priced(stacked()), Seating(2, (Seat((0, 1)),) * 2))
    first, second = np.flatnonzero(step.act == Act.ALL_REDUCE)
    assert {step.name_of(op) for op in waits_for(step, first)} == {"dense 1 backward"}
    assert len(waits_for(step, first)) == 2
    assert {step.name_of(op) for op in waits_for(step, second)} == {"dense 0 backward", "dense 1 sum"}
    assert set(step.stream[[first, second]]) == {SUMS}


def test_sums_of_different_groups_do_not_wait_for_each_other():
    step = lower_priced(priced(stacked()), Seating(4, (Seat((0, 1)), Seat((2, 3)))))
    second = np.flatnonzero(step.act == Act.ALL_REDUCE)[1]
    assert {step.name_of(op) for op in waits_for(step, second)} == {"dense 0 backward"}


def test_a_bucket_joins_sums_of_a_group():
    step = lower_priced(priced(stacked()), Seating(2, (Seat((0, 1)),) * 2), bucket_bytes=1e9)
    (only,) = np.flatnonzero(step.act == Act.ALL_REDUCE)
    assert step.amount[only] == 4 * (16 * 32 + 32 + 32 * 8 + 8)
    assert len(waits_for(step, only)) == 4


def test_micro_batches_run_all_forwards_first_and_sum_once():
    step = lower_priced(priced(stacked(), micro_batches=2), Seating(2, (Seat((0,)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 0) == ["dense 0 forward"] * 2 + ["dense 0 backward"] * 2 + ["update"]
    assert len(names(step, Act.SEND)) == 4
    two = lower_priced(priced(stacked(), micro_batches=2), Seating(2, (Seat((0, 1)),) * 2))
    assert len(names(two, Act.ALL_REDUCE)) == 2


def test_samples_travel_to_experts_and_back_in_both_passes():
    step = lower_priced(priced(with_experts()), Seating(2, (Seat((0, 1)), Seat((0, 1), Manner.EXPERT))))
    assert names(step, Act.ALL_TO_ALL) == [
        "mixture forward dispatch", "mixture forward combine", "mixture backward combine", "mixture backward dispatch",
    ]  # fmt: skip


def test_a_server_without_layers_does_nothing():
    step = lower_priced(priced(stacked()), Seating(3, (Seat((0,)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 2) == []


def test_a_step_counts_the_arithmetic_of_the_whole_batch():
    workload = recommender()
    seats = (Seat((0,), Manner.PINNED), Seat((1,), Manner.PINNED), *(Seat((0, 1)),) * 3)
    strategy = strategy_of(Seating(2, seats), 16)
    step = lower(workload, strategy, Placement(strategy), FlopPrices(), server=Server())
    assert step.flops == 2 * (workload.forward_flops() + workload.backward_flops())


def test_a_seating_of_another_model_is_refused():
    with pytest.raises(StrategyError, match="the seating has 1 seats, stack has 2 layers: give a seat for every layer"):
        lower_priced(priced(stacked()), Seating(2, (Seat((0,)),)))
