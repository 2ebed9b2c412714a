"""Bytes of a GPU where products are in 8 or 4 bits, by hand, as Transformer Engine keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.device.device import PRECISIONS, device
from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import KeptPrices, Memory, Placement, Strategy, cut, memory, shares_of
from ropewalk.strategy.shares import kept_bytes
from ropewalk.task.lower import lower
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion
from ropewalk.training.prepared import prepared
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import build

TOKENS, HIDDEN, FFN, KEYS = 128, 2048, 8192, 512
PRODUCTS = HIDDEN * (HIDDEN + 2 * KEYS) + HIDDEN * HIDDEN + 3 * HIDDEN * FFN
"""Weights of the products of a block of Llama 3.2 1B."""


def model(stack: str = "megatron") -> Workload:
    return build(f"llama-3.2-1b:layers=2,stack={stack}", 1, TOKENS)


def kept(precision: str, stack: str = "megatron", strategy: Strategy | None = None) -> float:
    """Bytes of a block."""
    block = shares_of(model(stack), strategy or Strategy())[1]
    return kept_bytes(block, device("b200").numbers(PRECISIONS[precision]))


def held(precision: str, gpu: str = "b200", stack: str = "megatron", strategy: Strategy | None = None) -> Memory:
    plan, listed = strategy or Strategy(), KeptPrices(pricer(gpu, precision))
    shares = shares_of(model(stack), plan)
    return memory(plan, shares, cut(model(stack), plan, shares, listed), listed.numbers)


INPUTS = HIDDEN + HIDDEN + FFN
"""Elements of a token that products alone read again: the results of two norms, and what the gate makes."""


@pytest.mark.parametrize(
    ("precision", "narrow"), [("fp8", 1.0), ("fp8-block", 33 / 32), ("mxfp8", 33 / 32), ("nvfp4", 9 / 16)]
)
def test_inputs_of_linear_layers_are_kept_narrow_and_that_of_the_projection_besides(
    precision: str, narrow: float
) -> None:
    # Attention keeps its result in bf16 for itself; the projection behind it keeps a narrow copy.
    saved = TOKENS * (INPUTS * (2 - narrow) - HIDDEN * narrow)
    assert kept("bf16") - kept(precision) == pytest.approx(saved)


def test_under_sequence_parallelism_a_rank_keeps_its_part_of_what_was_gathered() -> None:
    plan = Strategy(tensor=4, sequence_parallel=True)
    saved = TOKENS * (INPUTS - HIDDEN) / 4
    assert kept("bf16", strategy=plan) - kept("fp8", strategy=plan) == pytest.approx(saved)


@pytest.mark.parametrize(
    ("precision", "gpu", "copies"),
    [
        ("fp8", "h100", 2.0),  # Hopper multiplies rows with rows alone
        ("fp8-delayed", "h100", 2.0),
        ("fp8-block", "h100", 2 * (1 + 4 / 128**2)),  # a scale for 128 x 128 numbers
        ("fp8", "b200", 1.0),
        ("mxfp8", "b200", 2 * 33 / 32),  # a scale for 32 numbers, along rows and along columns
        ("nvfp4", "b200", 2 * 9 / 16),
    ],
)
def test_weights_have_narrow_copies_beside_those_in_bf16(precision: str, gpu: str, copies: float) -> None:
    more = held(precision, gpu).weights - held("bf16", gpu).weights
    assert more == pytest.approx([2 * PRODUCTS * copies])
    assert held(precision, gpu).optimiser == pytest.approx(held("bf16", gpu).optimiser)


def test_under_zero_three_only_layers_that_are_there_have_narrow_copies() -> None:
    plan = Strategy(data=8, zero=3, prefetch=False)
    more = held("fp8", strategy=plan).weights - held("bf16", strategy=plan).weights
    assert more == pytest.approx([PRODUCTS])


@pytest.mark.parametrize("stack", ["eager", "compiled", "fsdp2"])
def test_other_stacks_keep_bf16_and_narrow_it_in_every_pass(stack: str) -> None:
    assert kept("fp8", stack) == kept("bf16", stack)
    assert held("fp8", stack=stack).total == pytest.approx(held("bf16", stack=stack).total)


def test_experts_keep_what_both_of_their_products_read() -> None:
    block = shares_of(build("mixtral-8x7b:layers=1,stack=megatron", 1, TOKENS), Strategy())[1]
    unpadded = replace(device("b200").numbers(PRECISIONS["fp8"]), expert_rows=1)
    wide, narrow = (kept_bytes(block, numbers) for numbers in (device("b200").numbers(PRECISIONS["bf16"]), unpadded))
    hidden, ffn = 4096, 14336
    # The input of queries, keys and values saves as much as the copy of the projection takes.
    assert wide - narrow == pytest.approx(2 * TOKENS * (hidden + ffn))
    assert block.narrow == 3 * 8 * hidden * ffn + hidden * (hidden + 2 * 1024) + hidden * hidden


def test_weights_may_have_narrow_copies_alone() -> None:
    wide = held("fp8", "h100")
    alone = held("fp8", "h100", strategy=Strategy(narrow_weights=True))
    assert wide.weights - alone.weights == pytest.approx([2 * 2 * PRODUCTS])
    assert held("bf16", "h100", strategy=Strategy(narrow_weights=True)).weights == held("bf16", "h100").weights


@pytest.mark.parametrize(
    ("gpu", "precision", "sent"), [("b200", "fp8", 1.0), ("b200", "mxfp8", 2.0), ("h100", "fp8-block", 1 + 4 / 128**2)]
)
def test_updated_weights_that_are_narrow_alone_are_gathered_in_8_bits_where_rows_and_columns_have_one_scale(
    gpu: str, precision: str, sent: float
) -> None:
    plan = Strategy(data=2, zero=1, narrow_weights=True)
    step = lower(model(), plan, Placement(plan), pricer(gpu, precision))
    gathered = step.amount[(step.act == Act.ALL_GATHER)].sum()
    assert gathered == pytest.approx(2 * model().parameters() - (2 - sent) * 2 * PRODUCTS)


@pytest.mark.parametrize(
    ("precision", "stack", "zero", "remedy"),
    [
        ("bf16", "megatron", 1, "give --dtype fp8"),
        ("fp8", "fsdp2", 1, "give --stack megatron"),
        ("fp8", "megatron", 3, "give --zero 1 or 2"),
    ],
)
def test_narrow_copies_alone_are_refused_where_there_are_none(
    precision: str, stack: str, zero: int, remedy: str
) -> None:
    question = TrainingQuestion(
        f"llama-3.2-1b:layers=2,stack={stack}", read_cluster("1x2", Given(device="h100")), precision=precision,
        usual=Strategy(narrow_weights=True, zero=zero),
    )  # fmt: skip
    with pytest.raises(StrategyError, match=remedy):
        prepared(question)


@pytest.mark.parametrize(("name", "rows"), [("fp8", 16), ("mxfp8", 32), ("nvfp4", 128)])
def test_rows_that_are_added_to_each_expert_are_kept_too(name, rows):
    """Each of 8 experts has 256 tokens and half a multiple of rows more."""
    block = shares_of(build("mixtral-8x7b:layers=1,stack=megatron", 1, 1024), Strategy())[1]
    numbers = device("b200").numbers(PRECISIONS[name])
    assert numbers.expert_rows == rows
    added = kept_bytes(block, numbers) - kept_bytes(block, replace(numbers, expert_rows=1))
    hidden, ffn, more = 4096, 14336, 8 * (rows - 1) / 2
    assert added == pytest.approx(more * (2 * 2 * ffn + (hidden + ffn) * numbers.narrow_bytes))
