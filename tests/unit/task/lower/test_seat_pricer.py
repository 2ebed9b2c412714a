"""What a server computes, holds and sums of a layer, counted by hand."""

import pytest
from tiny_seats import FlopPrices, Wide, feed_forward, priced, recommender, stacked, with_experts

from ropewalk.collectives.act import Act
from ropewalk.errors import StrategyError
from ropewalk.strategy.columns import can_be_cut, can_be_split, cut
from ropewalk.strategy.seating import Manner, Seat, Seating, coset
from ropewalk.strategy.server import Server
from ropewalk.task.lower.seat_pricer import SeatPricer, met_in, seconds_in
from ropewalk.workload.source import open_workload

LAYER = 16 * 32 + 32
"""Parameters of the one layer of the stack below."""


def work(seat, **rest):
    return priced(stacked(widths=(16, 32)), **rest).work(0, seat)


def met(moves):
    return [(move.act, move.amount) for move in met_in(moves)]


def test_servers_by_samples_share_the_batch_and_sum_all_weights():
    one, four = work(Seat((0,))), work(Seat((0, 1, 2, 3)))
    assert seconds_in(one.forward) == pytest.approx(4 * seconds_in(four.forward))
    assert (one.sum_bytes, four.sum_bytes) == (0, 4 * LAYER)
    assert seconds_in(one.forward) == pytest.approx(2 * 48 * 16 * 32 / 1e9)


def test_gpus_of_a_server_share_its_samples_and_sum_weights_among_themselves():
    one, four = work(Seat((0,))), work(Seat((0,)), gpus=4)
    assert seconds_in(four.forward) == pytest.approx(seconds_in(one.forward) / 4)
    assert seconds_in(four.backward) - seconds_in(one.backward) / 4 == pytest.approx(2 * 4 * LAYER * 3 / 4 / 1e9)


def test_the_sum_inside_a_server_is_paid_once_a_step():
    whole, parts = work(Seat((0,)), gpus=4), work(Seat((0,)), gpus=4, micro_batches=2)
    assert 2 * seconds_in(parts.backward) == pytest.approx(seconds_in(whole.backward))


def test_a_layer_cut_by_outputs_has_the_whole_batch_and_a_part_of_the_weights():
    cut_in_four = work(Seat((0, 1, 2, 3), Manner.COLUMNS))
    assert seconds_in(cut_in_four.forward) == pytest.approx(seconds_in(work(Seat((0,))).forward) / 4)
    assert cut_in_four.sum_bytes == 0
    assert cut_in_four.update_s == pytest.approx(LAYER / 4 * 1e-9)


def test_a_pinned_table_is_spread_over_gpus_and_neither_summed_nor_swept():
    one, four = (priced(recommender(), gpus=gpus).work(0, Seat((0,), Manner.PINNED)) for gpus in (1, 4))
    assert (four.sum_bytes, four.update_s) == (0, 0)
    weights, looked_up = 64 * 4 * 4, 8 * 2 * 48
    assert (one.held_bytes, four.held_bytes) == (weights + looked_up, (weights + looked_up) / 4)


def test_memory_is_weights_gradients_state_and_what_is_kept():
    held = {name: work(Seat((0,)), optimiser=name).held_bytes for name in ("sgd", "momentum", "adamw")}
    assert held["sgd"] == 2 * 4 * LAYER + 4 * 48 * 16
    assert held["momentum"] - held["sgd"] == 4 * LAYER
    assert held["adamw"] - held["sgd"] == 8 * LAYER
    assert work(Seat((0,)), micro_batches=4).held_bytes == held["sgd"]  # all micro-batches are kept


def test_experts_are_spread_and_other_weights_summed():
    pricer = priced(with_experts())
    alone, spread = pricer.work(1, Seat((0,))), pricer.work(1, Seat((0, 1), Manner.EXPERT))
    assert len(spread.forward) == len(spread.backward) == 5
    assert met(spread.forward) == met(spread.backward) == [(Act.ALL_TO_ALL, 4 * 24 * 8)] * 2
    assert spread.sum_bytes == 4 * 2 * (8 * 8 + 8)
    assert met(alone.forward) == []


def test_batches_that_do_not_divide_are_refused():
    with pytest.raises(StrategyError, match="48 samples do not divide into 5 equal parts: give a batch"):
        work(Seat((0, 1, 2, 3, 4)))
    with pytest.raises(StrategyError, match="48 samples do not divide into 5 equal micro-batches: give a divisor"):
        work(Seat((0,)), micro_batches=5)
    with pytest.raises(StrategyError, match="no optimiser 'lion': use one of"):
        work(Seat((0,)), optimiser="lion")


def test_servers_without_gpus_or_memory_are_refused():
    with pytest.raises(StrategyError, match="3 findings"):
        Server(0, 0.0, 0.0)


def test_layers_with_one_weighed_operator_can_be_cut():
    layers = recommender().layers
    assert [can_be_cut(layer, 4) for layer in layers] == [True, True, True, False, True]
    assert not can_be_cut(layers[0], 8)  # width 4
    with pytest.raises(
        StrategyError, match="layer join cannot be cut into 2 parts by its outputs: split it by samples"
    ):
        cut(layers[3], 2)


def test_a_workload_that_is_fixed_at_its_batch_says_so():
    fixed = stacked()
    object.__setattr__(fixed, "resize", None)
    with pytest.raises(Exception, match="is fixed at micro-batches of 8: import it for 6"):
        SeatPricer(fixed, priced(stacked()).prices, 48).work(0, Seat((0, 1)))


def test_a_seating_names_all_its_mistakes():
    with pytest.raises(StrategyError, match="3 findings"):
        Seating(4, (Seat(()), Seat((4,)), Seat((0, 1), Manner.PINNED)))
    with pytest.raises(StrategyError, match="3 of 8 servers are not a coset: give a degree that divides 8"):
        coset(8, 3)


def test_a_layer_split_by_tensor_sums_its_results_and_the_gradients_of_its_inputs():
    pricer = priced(feed_forward(), gpus=2)
    alone, split = pricer.work(0, Seat((0,))), pricer.work(0, Seat((0, 1, 2, 3), Manner.TENSOR))
    assert met(split.forward) == met(split.backward) == [(Act.ALL_REDUCE, 4 * 48 * 8)]
    assert seconds_in(split.forward) == pytest.approx(seconds_in(alone.forward) / 4)
    assert split.sum_bytes == 0
    # The bias of the second product is on every server.
    assert split.update_s == pytest.approx((alone.update_s - 8e-9) / 4 + 8e-9)


@pytest.mark.parametrize(("model", "ways"), [("gpt2-xl", 5), ("bert-large", 4), ("llama-7b", 8), ("mixtral-8x7b", 4)])
def test_layers_of_language_models_are_split_wherever_megatron_splits_them(model, ways):
    workload = open_workload(model)
    pricer = SeatPricer(workload, FlopPrices(), 1, Server(1))
    sized = workload.at_batch(1)
    for at in (0, 1, len(workload.layers) - 1):
        assert can_be_split(sized.layers[at], ways, 1)
        work = pricer.work(at, Seat(tuple(range(ways)), Manner.TENSOR))
        assert met_in(work.forward + work.backward)
        assert not can_be_split(sized.layers[1], 7, 1)


def test_weights_in_two_bytes_have_a_copy_in_four_that_the_optimiser_updates():
    narrow = SeatPricer(stacked(), FlopPrices(precision=Wide(2.0)), 48, Server(1))
    wide = SeatPricer(stacked(), FlopPrices(), 48, Server(1))
    weights, inputs = 16 * 32 + 32, 48 * 16
    assert narrow.work(0, Seat((0,))).held_bytes == (2 + 2 + 4) * weights + 2 * inputs
    assert wide.work(0, Seat((0,))).held_bytes == (4 + 4) * weights + 4 * inputs
