"""Strategies that do not fit are refused with everything that is wrong and what to change."""

import pytest
from tiny_models import transformer

from ropewalk.errors import StrategyError
from ropewalk.strategy import LayerChoice, Order, Placement, Strategy, check, derive
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.workload import Layer, chain

TINY = transformer()
MIXTURE = transformer(mixture=8)
PLAIN = chain("plain", [Layer(f"linear {n}", (Linear(8, 4, 4),), 32) for n in range(4)], batch=8)
TABLES = chain("tables", [*PLAIN.layers, Layer("rows", (Exchange(Meeting.TABLES, 32),), 32)], batch=8)
GROUPED = chain(
    "grouped",
    [Layer("attention", (FusedAttention(1, 12, 3, 8, 8, 4), Exchange(Meeting.LEAVE, 8)), 8)],
    batch=1,
    sequence=8,
)


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(),
        Strategy(data=3, tensor=4, pipeline=2, sequence_parallel=True, micro_batches=5, zero=1),
        Strategy(pipeline=2, interleave=2, schedule="interleaved", micro_batches=4),
        Strategy(context=2, zero=3, recompute="full"),
        Strategy(pipeline=2, micro_batches=4, schedule="dualpipe", zero=3),
        Strategy(stages=(0, 3), pipeline=2, schedule="gpipe"),
        Strategy(tensor=2, choices=(LayerChoice("block 1", tensor=1), LayerChoice("block*", recompute="full"))),
    ],
    ids=Strategy.said,
)
def test_strategy_that_fits_passes(strategy):
    check(strategy, TINY, strategy.ranks)


@pytest.mark.parametrize(
    ("strategy", "workload", "text"),
    [
        (Strategy(data=0), TINY, "data is 0: give a whole number, 1 or more"),
        (Strategy(zero=4), TINY, "zero is 4: give 0, 1, 2 or 3"),
        (Strategy(data=2, zero=2, order=Order(partition_bytes=4e6)), TINY, "set zero to 0 or 1"),
        (
            Strategy(data=2, zero=1, order=Order(across_steps=True)),
            TINY,
            "set zero to 0, or use an order with a barrier",
        ),
        (Strategy(schedule="2f2b"), TINY, "no schedule '2f2b': use one of 1f1b, 1f1b-deep, gpipe, zb-h1"),
        (Strategy(recompute="some"), TINY, "no recompute 'some': use one of none, selective, full"),
        (Strategy(optimiser="guess"), TINY, "no optimiser 'guess': use one of none, sgd"),
        (
            Strategy(data=2, pipeline=2, micro_batches=4, schedule="dualpipe"),
            TABLES,
            "two copies of embedding tables .*: use dualpipev or another schedule with one copy",
        ),
        (Strategy(zero=3), TINY, "zero 3 shards state over data ranks, but there is one"),
        (Strategy(pipeline=5), TINY, "4 layers do not fill 5 stages: lower pipeline"),
        (Strategy(interleave=2, pipeline=2), TINY, "schedule 1f1b runs one piece on each stage"),
        (Strategy(schedule="interleaved", interleave=2), TINY, "needs a pipeline of 2 stages or more"),
        (
            Strategy(schedule="interleaved", interleave=2, pipeline=2, micro_batches=3),
            TINY,
            "in groups of 2, but there are 3: give 4",
        ),
        (Strategy(pipeline=2, stages=(0, 0)), TINY, "give 2 rising numbers from 0 on, all below 4"),
        (Strategy(pipeline=2, schedule="zb-h1", interleave=2), TINY, "schedule zb-h1 runs one piece on each stage"),
        (
            Strategy(pipeline=2, schedule="dualpipe", micro_batches=3),
            TINY,
            "dualpipe: 3 micro-batches: use an",
        ),
        (Strategy(schedule="zb-v"), TINY, "schedule zb-v needs a pipeline of 2 stages or more"),
        (Strategy(sequence_parallel=True), TINY, "splits over tensor ranks, but there is only one"),
        (Strategy(tensor=3), TINY, "4 attention heads do not split over 3 tensor ranks: use one of 1, 2, 4"),
        (Strategy(tensor=2), PLAIN, "no layer of plain can be split over 2 tensor ranks"),
        (Strategy(tensor=2), GROUPED, "3 key-value heads neither divide over 2 tensor ranks nor replicate evenly"),
        (
            Strategy(expert=2, data=3),
            MIXTURE,
            "3 data ranks, which expert degree 2 does not divide: set expert to a divisor of 3",
        ),
        (Strategy(expert=2, data=2), TINY, "tiny has no experts to spread over 2 ranks: set expert to 1"),
        (Strategy(expert=3, data=3), MIXTURE, "8 experts do not spread over 3 ranks: set expert to a divisor of 8"),
        (Strategy(context=2), PLAIN, "plain has no attention whose sequence can be cut into 2"),
        (Strategy(context=3), TINY, "a sequence of 8 tokens does not split over 3 context ranks"),
        (Strategy(choices=(LayerChoice("head", recompute="full"),)), TINY, "matches no layer of tiny: name one"),
        (Strategy(tensor=4, choices=(LayerChoice("*", tensor=2),)), TINY, "split over all 4 tensor ranks or 1"),
    ],
)
def test_strategy_that_does_not_fit_names_the_remedy(strategy, workload, text):
    with pytest.raises(StrategyError, match=text):
        check(strategy, workload)


def test_product_that_is_not_the_number_of_gpus_names_the_degree_to_change():
    text = "data 2 x tensor 4 x pipeline 1 x context 1 = 8 ranks, but there are 16 GPUs: set data to 4"
    with pytest.raises(StrategyError, match=text):
        check(Strategy(data=2, tensor=4), TINY, gpus=16)


def test_all_findings_come_at_once():
    with pytest.raises(StrategyError) as raised:
        check(Strategy(tensor=3, pipeline=9, zero=1, schedule="x"), TINY, gpus=4)
    assert "5 findings" in str(raised.value)


def test_data_degree_is_what_is_left_of_the_gpus():
    assert derive(64, {"tensor": 8, "pipeline": 2}).data == 4
    assert derive(8, {}).ranks == 8


def test_batch_is_cut_into_micro_batches():
    flat = derive(4, {}, batch=64)
    assert (flat.micro_batch, flat.micro_batches) == (16, 1)
    piped = derive(8, {"pipeline": 4}, batch=64)
    assert (piped.micro_batch, piped.micro_batches) == (1, 32)
    assert derive(8, {"pipeline": 4}, batch=64, micro_batch=4).micro_batches == 8
    assert derive(8, {"pipeline": 4}).micro_batches == 16


@pytest.mark.parametrize(
    ("gpus", "degrees", "batch", "micro_batch", "text"),
    [
        (12, {"tensor": 8}, None, None, "tensor 8 does not divide 12 GPUs: lower it or ask for 16 GPUs"),
        (8, {"tensor": 0}, None, None, "tensor is 0: give 1 or more, or leave it out"),
        (8, {}, 12, None, "a batch of 12 samples does not divide over 8 data ranks: give 16"),
        (2, {}, 12, 4, "the 6 samples of a data rank do not divide into micro-batches of 4: use one of 1, 2, 3, 6"),
    ],
)
def test_what_does_not_come_out_even_is_refused(gpus, degrees, batch, micro_batch, text):
    with pytest.raises(StrategyError, match=text):
        derive(gpus, degrees, batch=batch, micro_batch=micro_batch)


def test_last_choice_that_matches_a_layer_counts():
    plan = Strategy(tensor=4, choices=(LayerChoice("block*", tensor=1), LayerChoice("block 2", tensor=4)))
    assert [plan.split_of(layer).tensor for layer in TINY.layers] == [1, 1, 4, 1]


def test_tensor_ranks_are_neighbours_and_stages_are_far_apart():
    place = Placement(Strategy(data=2, tensor=2, pipeline=2))
    assert place.tensor_groups.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert place.data_groups.tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert place.pipeline_groups.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert place.stage_of().tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_other_orders_put_other_ranks_next_to_each_other():
    place = Placement(Strategy(data=2, tensor=2, pipeline=2), "tp-pp-dp")
    assert place.pipeline_groups.tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert place.data_groups.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_experts_are_spread_over_data_ranks():
    place = Placement(Strategy(data=4, tensor=2, expert=2, context=1))
    assert place.expert_groups.tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert place.expert_data_groups.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert place.data_groups.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_context_ranks_hold_the_same_weights():
    place = Placement(Strategy(data=2, context=2))
    assert place.context_groups.tolist() == [[0, 1], [2, 3]]
    assert place.data_groups.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("order", ["tp-dp", "tp-tp-dp-pp", "tp-dp-pp-xx", ""])
def test_order_that_is_none_is_refused(order):
    with pytest.raises(StrategyError, match=r"placement order .* write tp, dp and pp"):
        Placement(Strategy(), order)


def test_a_schedule_that_is_mistyped_is_answered_with_the_names_near_it():
    with pytest.raises(StrategyError, match="did you mean dualpipe or dualpipev"):
        check(Strategy(pipeline=2, schedule="dualpip"), TINY)
