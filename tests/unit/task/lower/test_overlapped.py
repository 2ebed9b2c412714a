"""Tensor-parallel communication behind products: seconds by hand, and where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest

from ropewalk.device.numbers import Numbers
from ropewalk.device.pricer import pricer
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import KeptPrices, Strategy, shares_of
from ropewalk.strategy.prices import Inside, Pace
from ropewalk.strategy.shares import Share
from ropewalk.task.lower.moves import Move, backward_moves, forward_moves, input_moves
from ropewalk.task.lower.passes import Walk
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator
from ropewalk.workload.zoo import build

TOKENS, HIDDEN, FFN = 1024, 2048, 8192
WIDE = 2048 + 2 * 512
"""Queries, keys and values of Llama 3.2 1B."""
RATE, SLOW = 1e12, 1e8
"""FLOP/s of the GPU in these tests, and bytes a second of its links where they are slow."""


@dataclass(frozen=True)
class ProductPrices:
    """A second for every 10^12 FLOPs of products, and nothing else."""

    numbers: Numbers

    @property
    def precision(self) -> Numbers:
        return self.numbers

    def forward(self, operators: tuple[Operator, ...]) -> float:
        return _seconds(kernel for op in operators for kernel in op.forward())

    def backward(self, operators: tuple[Operator, ...]) -> float:
        return _seconds(kernel for op in operators for kernel in op.backward())

    def weight(self, operators: tuple[Operator, ...]) -> float:
        return _seconds(kernel for op in operators for kernel in op.weight_backward())

    def update(self, parameters: int, tensors: int, optimiser: str) -> float:
        return 0.0


def _seconds(kernels: Iterable[Kernel]) -> float:
    return sum(kernel.flops for kernel in kernels if kernel.kind == "matmul") / RATE


PLAN = Strategy(tensor=4, sequence_parallel=True)


def block(strategy: Strategy = PLAN, stack: str = "megatron") -> Share:
    return shares_of(build(f"llama-3.2-1b:layers=2,stack={stack}", 1, TOKENS), strategy)[1]


def met(
    walk: Walk, bytes_s: float, strategy: Strategy = PLAN, numbers: Numbers | None = None, start_up_s: float = 0.0,
    **share: str,
) -> list[Move]:  # fmt: skip
    inside = Inside(8, bytes_s, start_up_s)
    prices = Pace(KeptPrices(ProductPrices(numbers or Numbers(2.0)), inside))
    return [move for move in walk(block(strategy, **share), strategy, prices) if move.act is not Act.COMPUTE]


WHOLE = TOKENS * HIDDEN * 2
"""Bytes that are gathered or scattered."""


def left_of(columns: int, hidden: float) -> float:
    """Bytes at `SLOW` that a part of the product of all tokens with so many columns of a rank does not hide."""
    return max(0.0, WHOLE - hidden * 2 * TOKENS * HIDDEN * columns / 4 / RATE * SLOW * 4 / 3)


def test_fast_links_hide_all_and_slow_ones_what_three_of_four_chunks_take() -> None:
    assert met(forward_moves, bytes_s=1e15) == []
    moves = met(forward_moves, SLOW)
    assert [move.act for move in moves] == [Act.ALL_GATHER, Act.REDUCE_SCATTER] * 2
    assert [move.amount for move in moves] == pytest.approx(
        [left_of(columns, 3 / 4) for columns in (WIDE, HIDDEN, 2 * FFN, FFN)]
    )


def test_going_back_gathers_hide_behind_gradients_of_inputs_and_scatters_behind_those_of_weights() -> None:
    moves = met(backward_moves, SLOW)
    gathered, scattered = ([move.amount for move in moves if move.act is act]
                           for act in (Act.ALL_GATHER, Act.REDUCE_SCATTER))  # fmt: skip
    assert gathered == pytest.approx([left_of(columns, 3 / 4) for columns in (FFN, HIDDEN)])
    assert scattered == pytest.approx([left_of(columns, 1) for columns in (2 * FFN, WIDE)])


def test_what_is_left_and_shorter_than_a_start_up_is_added_to_the_next() -> None:
    at_once, late = (met(forward_moves, SLOW, start_up_s=start_up_s) for start_up_s in (0.0, 0.03))
    lasts = [sum(move.amount for move in moves) * 3 / 4 / SLOW for moves in (at_once, late)]
    assert len(late) < len(at_once)
    assert lasts[0] - 0.03 < lasts[1] + len(late) * 0.03 < lasts[0] + 1e-9


def test_gradients_of_weights_that_are_put_off_hide_nothing() -> None:
    moves = met(input_moves, bytes_s=1e15)
    assert [(move.act, move.amount) for move in moves] == [(Act.REDUCE_SCATTER, WHOLE)] * 2


@pytest.mark.parametrize(
    ("strategy", "stack", "act"),
    [
        (replace(PLAN, tensor_overlap=False), "megatron", Act.ALL_GATHER),
        (PLAN, "fsdp2", Act.ALL_GATHER),
        (replace(PLAN, sequence_parallel=False), "megatron", Act.ALL_REDUCE),
        (replace(PLAN, tensor=16), "megatron", Act.ALL_GATHER),  # over the end of a server of eight
    ],
)
def test_all_is_waited_for_where_nothing_overlaps(strategy: Strategy, stack: str, act: Act) -> None:
    moves = met(forward_moves, 1e15, strategy, stack=stack)
    assert moves[0].act is act
    assert {move.amount for move in moves} == {WHOLE}


def test_what_is_gathered_for_narrow_products_is_as_narrow_and_what_is_summed_is_not() -> None:
    moves = met(forward_moves, 1e15, replace(PLAN, tensor_overlap=False), Numbers(2.0, 1.0, 2.0))
    assert [move.amount for move in moves] == [WHOLE / 2, WHOLE] * 2


def test_chunks_cost_what_smaller_products_cost_and_are_left_out_where_they_take_longer() -> None:
    strategy = Strategy(tensor=8, sequence_parallel=True)
    share = shares_of(build("llama-3.2-1b:layers=2,stack=megatron", 1, 256), strategy)[1]
    small = forward_moves(share, strategy, Pace(KeptPrices(pricer("h100"), Inside(8, 1e15, 0.0))))
    apart = forward_moves(share, strategy, Pace(KeptPrices(pricer("h100"))))
    assert [move.amount for move in small] == pytest.approx([move.amount for move in apart])


def test_a_step_with_overlap_is_shorter_and_ranks_that_are_apart_have_none() -> None:
    question = TrainingQuestion("llama3-8b:layers=2,stack=megatron", read_cluster("2x8", Given(device="h100")))
    quick, plan = QuickSteps(question), Strategy(data=2, tensor=8, sequence_parallel=True, micro_batch=1)
    with_it, without = (quick.run(replace(plan, tensor_overlap=on)).step_time_s for on in (True, False))
    assert with_it < 0.97 * without
    apart = [quick.run(replace(plan, tensor_overlap=on), order="dp-pp-tp-cp-ep").step_time_s for on in (True, False)]
    assert apart[0] == apart[1]
