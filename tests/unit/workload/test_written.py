"""Operators that are chains of launches, losses, experts, recurrent layers and interactions of features."""

import pytest

from ropewalk.workload import wide
from ropewalk.workload.dense import Linear
from ropewalk.workload.experts import Experts, SortTokens, SumExperts
from ropewalk.workload.image import BatchNorm
from ropewalk.workload.interaction import Interaction
from ropewalk.workload.loss import BinaryCrossEntropy, CrossEntropy
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.operator import Operator, Role, Split
from ropewalk.workload.routines import BIAS_DROPOUT_ADD, GELU, RMS_NORM, ROTATE
from ropewalk.workload.table import Embedding
from ropewalk.workload.written import Launch, Written


def test_a_launch_in_float32_moves_four_bytes_an_element_in_every_precision() -> None:
    kernel = Launch(reads=2, wide=True).kernel(8, 16)
    assert kernel.moved_bytes(2) == kernel.moved_bytes(4) == 4 * 3 * 8 * 16


def test_a_cast_reads_narrow_and_writes_wide() -> None:
    assert wide.cast(100).moved_bytes(2) == 200 + 400
    assert wide.cast(100).form == "cast"


def test_a_part_of_a_tensor_has_at_least_one_element() -> None:
    assert Launch(share=0.5).kernel(1, 1).dims[0] == 1
    assert Launch(share=0.5).kernel(4, 6).dims[0] == 12
    assert Launch(per_row=True).kernel(4, 6).dims[0] == 4


def test_a_mask_is_kept_a_byte_an_element() -> None:
    rejoin = Written(BIAS_DROPOUT_ADD, 8, 16)
    assert rejoin.saved_bytes() == 8 * 16
    assert rejoin.parameters() == 16


def test_heads_are_split_by_width_and_norms_by_rows() -> None:
    inside = Written(ROTATE, 64, 128, Role.INSIDE)
    outside = Written(RMS_NORM, 64, 128)
    assert inside.split(Split(tensor=4)) == Written(ROTATE, 64, 32, Role.INSIDE)
    assert outside.split(Split(tensor=4)) == outside
    assert outside.split(Split(tensor=4, sequence=True)).rows == 16
    assert outside.split(Split(context=2)).rows == 32


def test_a_written_gelu_keeps_four_tensors() -> None:
    assert Written(GELU, 8, 16).saved_elements() == 4 * 8 * 16


def test_the_loss_of_a_causal_model_is_taken_in_float32() -> None:
    loss = CrossEntropy(32, 1000, widened=True, shifted=True, role=Role.INSIDE)
    softmax = next(kernel for kernel in loss.forward() if kernel.form == "log_softmax")
    assert softmax.moved_bytes(2) == 8 * 32 * 1000
    assert loss.saved_bytes() == 4 * 32 * 1000 + 8 * 32
    assert loss.split(Split(tensor=8)).width == 125


def test_the_loss_of_a_classifier_stays_in_the_steps_precision() -> None:
    loss = CrossEntropy(32, 1000)
    assert loss.saved_elements() == 32 * 1000
    assert loss.split(Split(tensor=8)) == loss
    assert not any(kernel.form == "cast" for kernel in loss.forward() + loss.backward())


def test_grouped_products_do_the_arithmetic_of_their_slots() -> None:
    experts = Experts(slots=100, experts=8, hidden=64, ffn=96)
    products = [kernel for kernel in experts.forward() if kernel.kind == "grouped_matmul"]
    assert sum(kernel.flops for kernel in products) == 2 * 100 * 3 * 64 * 96
    back = [kernel for kernel in experts.backward() if kernel.kind == "grouped_matmul"]
    assert sum(kernel.flops for kernel in back) == 2 * sum(kernel.flops for kernel in products)


def test_slots_are_set_to_zero_in_copies_but_for_tokens_that_are_copies_already() -> None:
    masked, plain = (Experts(slots=100, experts=8, hidden=64, ffn=96, masked=told) for told in (True, False))
    assert len(masked.forward()) - len(plain.forward()) == 5
    assert len(masked.backward()) - len(plain.backward()) == 6


def test_results_by_narrow_weights_move_half_the_bytes_of_those_by_wide_ones() -> None:
    wide, narrow = SumExperts(32, 2, 64), SumExperts(32, 2, 64, narrow=True)
    moved = [sum(kernel.moved_bytes(2) for kernel in one.forward() + one.backward()) for one in (wide, narrow)]
    assert moved[1] < 0.6 * moved[0]
    assert not any(kernel.form == "cast" for kernel in narrow.forward() + narrow.backward())


def test_a_compiler_weighs_orders_and_sums_results_at_once() -> None:
    compiled = SumExperts(32, 2, 64, compiled=True)
    assert len(compiled.forward()) == 1
    assert compiled.backward() == SumExperts(32, 2, 64).backward()


def test_experts_are_split_over_ranks_and_their_neurons_over_tensor_ranks() -> None:
    experts = Experts(slots=100, experts=8, hidden=64, ffn=96)
    assert experts.split(Split(expert=4)) == Experts(100, 2, 64, 96)
    assert experts.split(Split(tensor=4)) == Experts(100, 8, 64, 24)


def test_a_weight_that_lies_the_other_way_has_the_same_products() -> None:
    straight, turned = Linear(32, 64, 256), Linear(32, 64, 256, turned=True)
    assert turned.forward()[0].dims == straight.forward()[0].dims
    assert turned.backward()[1].dims == (1, 64, 256, 32)
    assert straight.backward()[1].dims == (1, 256, 64, 32)
    assert turned.parameters() == straight.parameters()


def test_the_gradients_of_a_tied_table_are_added() -> None:
    assert len(Embedding(32, 1000, 64, tied=True).backward()) == len(Embedding(32, 1000, 64).backward()) + 1


def test_a_batch_norm_counts_its_batches() -> None:
    assert [kernel.kind for kernel in BatchNorm(2, 64, 49).forward()] == ["pointwise", "batch_norm"]


@pytest.mark.parametrize(
    "operator",
    [
        SortTokens(32, 2, 64, 8), SumExperts(32, 2, 64), Experts(64, 8, 64, 96), Lstm(16, 4, 64, 64),
        Interaction(4, 9, 16), BinaryCrossEntropy(4), CrossEntropy(4, 10), Written(RMS_NORM, 8, 64),
    ],
)  # fmt: skip
def test_every_kernel_moves_bytes_and_every_operator_calls_the_framework(operator: Operator) -> None:
    for kernel in operator.forward() + operator.backward():
        assert kernel.moved_bytes(2) > 0
        assert kernel.dims[0] > 0
    assert operator.host()
