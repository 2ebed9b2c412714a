"""Bytes of a GPU against the formulas of the papers."""

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer
from tiny_seats import recommender

from ropewalk.device.numbers import Numbers
from ropewalk.strategy import KeptPrices, LayerChoice, Strategy, cut, memory, shares_of
from ropewalk.strategy.memory import FRAGMENTATION, WORKSPACE_BYTES, updated
from ropewalk.strategy.seating import Manner, Seat, Seating, strategy_of
from ropewalk.strategy.server import ONE_GPU

BATCH, SEQUENCE, HIDDEN, HEADS = 2, 8, 16, 4
SBH = BATCH * SEQUENCE * HIDDEN
SCORES = 5 * HEADS * SEQUENCE / HIDDEN


def used(strategy, blocks=4, **rest):
    model = transformer(blocks, strategy.micro_batch, SEQUENCE, HIDDEN, HEADS, **rest)
    shares = shares_of(model, strategy)
    return memory(strategy, shares, cut(model, strategy, shares, KeptPrices(FlopPrices())), Numbers(2.0))


@pytest.mark.parametrize(
    ("strategy", "per_layer"),
    [
        (Strategy(), 34 + SCORES),
        (Strategy(tensor=2), 10 + 24 / 2 + SCORES / 2),
        (Strategy(tensor=4, sequence_parallel=True), (34 + SCORES) / 4),
        (Strategy(context=2), (34 + SCORES) / 2 + 2),  # keys and values are whole on every context rank
    ],
    ids=["whole", "tensor", "sequence", "context"],
)
def test_activations_are_those_of_korthikanti(strategy, per_layer):
    """Korthikanti et al. 2022, equations 1 to 4: bytes of a layer in units of s b h."""
    found = used(Strategy(**{**vars(strategy), "micro_batch": BATCH})).activations[0]
    assert found == pytest.approx(4 * SBH * per_layer)


def test_selective_recomputation_keeps_all_but_the_core_of_attention():
    plan = Strategy(micro_batch=BATCH, recompute="selective", tensor=2, sequence_parallel=True)
    again = SCORES / 2  # the scores of one layer at a time
    assert used(plan).activations[0] == pytest.approx(SBH * (4 * 34 / 2 + again))


def test_full_recomputation_keeps_the_input_of_every_layer_and_one_whole_layer():
    plan = Strategy(micro_batch=BATCH, recompute="full")
    assert used(plan).activations[0] == pytest.approx(SBH * (3 * 2 + 34 + SCORES))  # the first layer reads data


def test_one_layer_may_choose_otherwise():
    plan = Strategy(micro_batch=BATCH, choices=(LayerChoice("block [23]", recompute="full"),))
    assert used(plan).activations[0] == pytest.approx(
        SBH * (3 * (34 + SCORES) + 2)
    )  # one of the two at a time is whole


def test_stages_hold_as_many_micro_batches_as_are_in_flight():
    found = used(Strategy(micro_batch=BATCH, pipeline=4, micro_batches=3)).activations
    assert found == pytest.approx(SBH * (34 + SCORES) * np.array([3, 3, 2, 1]))
    gpipe = used(Strategy(micro_batch=BATCH, pipeline=4, micro_batches=3, schedule="gpipe")).activations
    assert gpipe == pytest.approx(SBH * (34 + SCORES) * np.array([3, 3, 3, 3]))


PARAMETERS = 12 * HIDDEN**2 + 13 * HIDDEN


def test_adam_in_mixed_precision_takes_sixteen_bytes_a_parameter():
    """Rajbhandari et al. 2020: 2 for the weight, 2 for the gradient, 12 for the optimiser."""
    found = used(Strategy())
    assert found.weights[0] == found.gradients[0] == 4 * PARAMETERS * 2
    assert found.optimiser[0] == 4 * PARAMETERS * 12


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_zero_shares_out_one_state_after_the_other(zero):
    ranks, layers = 16, 64
    found = used(Strategy(data=ranks, zero=zero), blocks=layers)
    whole, part = layers * PARAMETERS, layers * PARAMETERS / ranks
    assert found.optimiser[0] == pytest.approx(12 * (part if zero else whole))
    assert found.gradients[0] == pytest.approx(2 * (part + PARAMETERS if zero >= 2 else whole))
    assert found.weights[0] == pytest.approx(2 * (part + 2 * PARAMETERS if zero == 3 else whole))


def test_weights_that_are_kept_until_the_backward_pass_are_there_as_a_whole():
    given_up, kept = (used(Strategy(data=16, zero=3, regather=flag), blocks=64) for flag in (True, False))
    assert kept.weights[0] == 2 * 64 * PARAMETERS > given_up.weights[0]
    assert kept.optimiser[0] == given_up.optimiser[0]


def test_gradients_of_four_bytes_and_no_master_weights():
    found = used(Strategy(gradient_bytes=4, master_weights=False))
    assert (found.gradients[0], found.optimiser[0]) == (4 * PARAMETERS * 4, 4 * PARAMETERS * 8)


def test_experts_are_shared_out_over_their_ranks():
    whole, spread = (used(Strategy(data=4, expert=expert), mixture=8).weights[0] for expert in (1, 4))
    assert whole - spread == 2 * 4 * (8 - 2) * 3 * HIDDEN * 2 * HIDDEN


def test_last_stage_holds_a_copy_of_a_tied_embedding():
    words = 50
    alone = used(Strategy(), words=words).weights.sum()
    found = used(Strategy(pipeline=2, micro_batches=2), words=words).weights
    assert found.sum() == alone + 2 * words * HIDDEN


def test_parts_add_up_and_assumptions_are_stated():
    found = used(Strategy())
    known = found.weights + found.gradients + found.optimiser + found.activations
    assert found.total == pytest.approx(known * (1 + FRAGMENTATION) + WORKSPACE_BYTES)


def test_a_sparse_table_has_neither_gradients_of_all_its_rows_nor_an_update():
    """Its rows are updated in its backward pass, whatever the strategy."""
    strategy, model = Strategy(micro_batch=8, optimiser="momentum"), recommender(batch=8, tables=1, width=4, hidden=16)
    shares = shares_of(model, strategy)
    found = memory(strategy, shares, cut(model, strategy, shares, KeptPrices(FlopPrices())), Numbers(2.0))
    table, dense = 64 * 4, (8 * 16 + 16) + (20 * 8 + 8)
    assert found.weights[0] == 2 * (table + dense)
    assert found.gradients[0] == 2 * dense
    assert found.optimiser[0] == 4 * table + (4 + 4) * dense  # rows are updated in place, without a copy in 32 bits
    assert updated(strategy, list(shares)) == (dense, 4)


def test_a_model_on_one_gpu_needs_the_same_memory_by_degrees_and_by_seats():
    model = recommender(batch=8)
    seats = [Seat((0,), Manner.PINNED if layer.kind == "table" else Manner.SAMPLE) for layer in model.layers]
    found = []
    for strategy in (Strategy(micro_batch=8, optimiser="sgd"), strategy_of(Seating(1, tuple(seats)), 8)):
        shares = shares_of(model, strategy, ONE_GPU)
        found.append(
            memory(strategy, shares, cut(model, strategy, shares, KeptPrices(FlopPrices())), Numbers(2.0)).parts()
        )
    assert {name: bytes_.tolist() for name, bytes_ in found[0].items()} == {
        name: pytest.approx(bytes_.tolist()) for name, bytes_ in found[1].items()
    }


def test_servers_hold_what_they_hold_of_each_of_their_layers():
    model = recommender(batch=8, tables=2)
    seats = (Seat((0,), Manner.PINNED), Seat((1,), Manner.PINNED), *(Seat((0, 1)),) * 2, Seat((1,)))
    strategy = strategy_of(Seating(3, seats), 8)
    shares = shares_of(model, strategy, ONE_GPU)
    found = memory(strategy, shares, cut(model, strategy, shares, KeptPrices(FlopPrices())), Numbers(2.0))
    table, bottom, top = 64 * 4, 8 * 16 + 16, 24 * 8 + 8
    assert found.weights.tolist() == [2 * (table + bottom), 2 * (table + bottom + top), 0]


def test_passes_side_by_side_gather_the_layers_of_both():
    """Under ZeRO-3 a rank holds its share of eight layers, and two layers for each pass that runs."""
    usual = {"data": 2, "pipeline": 2, "micro_batches": 4, "zero": 3}
    alone, beside = (used(Strategy(**usual, schedule=name), 16).weights[0] for name in ("zb-v", "dualpipev"))
    layer = 2 * transformer(1, 1, SEQUENCE, HIDDEN, HEADS).parameters()
    assert alone == 8 * layer / 2 + 2 * layer
    assert beside == 8 * layer / 2 + 4 * layer
    both = used(Strategy(pipeline=2, micro_batches=4, zero=3, schedule="dualpipe"), 16).weights[0]
    assert both == 16 * layer / 2 + 4 * layer
