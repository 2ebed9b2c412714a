"""Steps of seated layers: who computes when, who sends what to whom, when weights are summed."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_seats import FlopPrices, lowered, priced, recommender, stacked, with_experts

from ropewalk.errors import StrategyError
from ropewalk.strategy.order import Order
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.seating import Manner, Seat, Seating, strategy_of
from ropewalk.strategy.server import Server
from ropewalk.task.lower import lower
from ropewalk.task.lower.moves import STREAM
from ropewalk.task.step import Act
from ropewalk.workload.dense import Linear
from ropewalk.workload.workload import Layer, Workload


def names(step, act, rank=None):
    at = np.flatnonzero((step.act == act) & (True if rank is None else step.rank == rank))
    return [step.name_of(operation) for operation in at]


def sent(step, act):
    return step.amount[step.act == act].tolist()


def waits_for(step, operation):
    return step.dep[step.dep_start[operation] : step.dep_start[operation + 1]].tolist()


def test_a_server_computes_its_layers_in_order_and_back_and_updates_last():
    step = lowered(priced(stacked()), Seating(2, (Seat((0, 1)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 0) == ["dense 0 forward", "dense 0 backward", "update"]
    assert names(step, Act.COMPUTE, 1) == [
        "dense 0 forward", "dense 1 forward", "dense 1 backward", "dense 0 backward", "update", "update",
    ]  # fmt: skip


def test_activations_go_forward_and_gradients_come_back_along_the_same_pairs():
    step = lowered(priced(stacked()), Seating(2, (Seat((0, 1)), Seat((1,)))))
    sends = np.flatnonzero(step.act == Act.SEND)
    ends = [(int(step.rank[op]), int(step.peer[op]), float(step.amount[op])) for op in sends]
    half = 48 / 2 * 32 * 4
    assert ends == [(0, 1, half), (1, 0, half)]


def test_layers_that_sit_alike_send_nothing():
    step = lowered(priced(stacked()), Seating(3, (Seat((0, 1, 2)),) * 2))
    assert names(step, Act.SEND) == []
    assert sent(step, Act.ALL_REDUCE) == [4 * (32 * 8 + 8), 4 * (16 * 32 + 32)]


def test_a_sum_waits_for_the_backward_pass_of_all_and_for_the_sum_before_it():
    step = lowered(priced(stacked()), Seating(2, (Seat((0, 1)),) * 2))
    first, second = np.flatnonzero(step.act == Act.ALL_REDUCE)
    assert {step.name_of(op) for op in waits_for(step, first)} == {"dense 1 backward"}
    assert len(waits_for(step, first)) == 2
    assert {step.name_of(op) for op in waits_for(step, second)} == {"dense 0 backward", "gradients"}
    assert first in waits_for(step, second)
    assert set(step.stream[[first, second]]) == {STREAM["data"]}


def test_sums_of_different_groups_do_not_wait_for_each_other():
    step = lowered(priced(stacked()), Seating(4, (Seat((0, 1)), Seat((2, 3)))))
    second = np.flatnonzero(step.act == Act.ALL_REDUCE)[1]
    assert {step.name_of(op) for op in waits_for(step, second)} == {"dense 0 backward"}


def test_a_bucket_joins_sums_of_a_group():
    step = lowered(priced(stacked()), Seating(2, (Seat((0, 1)),) * 2), bucket_bytes=1e9)
    (only,) = np.flatnonzero(step.act == Act.ALL_REDUCE)
    assert step.amount[only] == 4 * (16 * 32 + 32 + 32 * 8 + 8)
    assert len(waits_for(step, only)) == 2  # of the last backward pass, behind which the others are


def test_micro_batches_run_all_forwards_first_and_sum_once():
    step = lowered(priced(stacked(), micro_batches=2), Seating(2, (Seat((0,)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 0) == ["dense 0 forward"] * 2 + ["dense 0 backward"] * 2 + ["update"]
    assert len(names(step, Act.SEND)) == 4
    two = lowered(priced(stacked(), micro_batches=2), Seating(2, (Seat((0, 1)),) * 2))
    assert len(names(two, Act.ALL_REDUCE)) == 2


def test_samples_travel_to_experts_and_back_in_both_passes():
    step = lowered(priced(with_experts()), Seating(2, (Seat((0, 1)), Seat((0, 1), Manner.EXPERT))))
    assert names(step, Act.ALL_TO_ALL) == [
        "mixture forward dispatch", "mixture forward combine", "mixture backward combine", "mixture backward dispatch",
    ]  # fmt: skip


def test_gradients_may_wait_for_the_end_of_the_backward_pass():
    pricer, seating = priced(stacked()), Seating(3, (Seat((0, 1)), Seat((1, 2))))
    strategy = strategy_of(seating, pricer.batch)
    step = lower(pricer.workload, late(strategy), Placement(late(strategy)), pricer)
    for at in np.flatnonzero(step.act == Act.ALL_REDUCE):
        members = step.groups[step.group[at]].tolist()
        lasts = {rank: max(op for op in computes(step, rank) if step.name_of(op) != "update") for rank in members}
        assert sorted(waits_for(step, at)) == sorted(lasts.values())


def late(strategy):
    return replace(strategy, order=Order(fusion=0.0, overlap=False))


def computes(step, rank):
    return np.flatnonzero((step.act == Act.COMPUTE) & (step.rank == rank)).tolist()


def test_orders_that_overtake_are_refused():
    strategy = replace(strategy_of(Seating(2, (Seat((0, 1)),) * 2), 48), order=Order(priority="forward"))
    with pytest.raises(StrategyError, match="seats of servers reduce gradients as they are ready"):
        lower(stacked(), strategy, Placement(strategy), FlopPrices())


def test_a_layer_without_operators_hands_on_what_it_has_read():
    """It takes no time, and what it sends waits for what it waits for."""

    def model(batch=8):
        layers = (
            Layer("first", (Linear(batch, 8, 8),), batch * 8),
            Layer("nothing", (), batch * 8, (0,)),
            Layer("last", (Linear(batch, 8, 8),), batch * 8, (1,)),
        )
        return Workload("passing", layers, batch, resize=model)

    pricer = priced(model())
    step = lowered(pricer, Seating(3, (Seat((0,)), Seat((1,)), Seat((2,)))))
    arrives = next(at for at in np.flatnonzero(step.act == Act.SEND) if step.peer[at] == 1)
    passes = [at for at in computes(step, 1) if arrives in waits_for(step, at)]
    assert [step.amount[at] for at in passes] == [0.0]
    (sent,) = (at for at in np.flatnonzero(step.act == Act.SEND) if (step.rank[at], step.peer[at]) == (1, 2))
    assert waits_for(step, sent) == passes


def test_a_server_without_layers_does_nothing():
    step = lowered(priced(stacked()), Seating(3, (Seat((0,)), Seat((1,)))))
    assert names(step, Act.COMPUTE, 2) == []


def test_a_step_counts_the_arithmetic_of_the_whole_batch():
    workload = recommender()
    seats = (Seat((0,), Manner.PINNED), Seat((1,), Manner.PINNED), *(Seat((0, 1)),) * 3)
    strategy = strategy_of(Seating(2, seats), 16)
    step = lower(workload, strategy, Placement(strategy), FlopPrices(), server=Server())
    assert step.flops == 2 * (workload.forward_flops() + workload.backward_flops())


def test_a_seating_of_another_model_is_refused():
    with pytest.raises(StrategyError, match="1 parts for 2 layers: give every layer its own part"):
        lowered(priced(stacked()), Seating(2, (Seat((0,)),)))
