"""The copies around FSDP's collectives: bytes by hand, and where there are none."""

from __future__ import annotations

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.strategy import Strategy, shares_of
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.shares import Share, computed_again
from ropewalk.task.lower.moves import backward_moves, forward_moves, recompute_moves
from ropewalk.task.step import Act
from ropewalk.workload.flat import FlatCopies
from ropewalk.workload.zoo import build


def block(strategy: Strategy, stack: str = "fsdp2", model: str = "llama-3.2-1b", lora: int = 0) -> Share:
    return shares_of(build(f"{model}:layers=2,stack={stack},lora={lora}", 1, 128), strategy)[1]


def copied_bytes(share: Share) -> list[float]:
    copies = [op for op in share.layer.operators if isinstance(op, FlatCopies)]
    return [kernel.moved_bytes(2) for op in copies for kernel in (*op.forward(), *op.backward())]


WEIGHTS = 2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048
"""Of a block of Llama 3.2 1B: queries, keys, values and their projection, three products, two norms."""


def test_every_weight_is_copied_before_both_passes_and_every_gradient_behind_the_second() -> None:
    share = block(Strategy(data=4, zero=3))
    assert share.parameters == WEIGHTS
    assert copied_bytes(share) == [4 * WEIGHTS, 4 * WEIGHTS, 4 * WEIGHTS]


def test_gradients_summed_in_float32_are_written_in_float32() -> None:
    assert copied_bytes(block(Strategy(data=4, zero=3, gradient_bytes=4.0))) == [4 * WEIGHTS, 4 * WEIGHTS, 6 * WEIGHTS]


def test_the_first_fsdp_gathers_into_place_and_joins_and_divides_gradients() -> None:
    assert copied_bytes(block(Strategy(data=4, zero=3), "fsdp")) == [4 * WEIGHTS, 4 * WEIGHTS]
    wide = block(Strategy(data=4, zero=3, gradient_bytes=4.0), "fsdp")
    assert copied_bytes(wide) == [4 * WEIGHTS, 6 * WEIGHTS, 8 * WEIGHTS]  # joined, cast, divided


def test_weights_that_are_kept_are_copied_once() -> None:
    assert copied_bytes(block(Strategy(data=4, zero=3, regather=False))) == [4 * WEIGHTS, 4 * WEIGHTS]


def test_frozen_weights_are_copied_before_passes_but_have_no_gradients() -> None:
    share = block(Strategy(data=4, zero=3), lora=8)
    assert copied_bytes(share) == [4 * (share.frozen + share.parameters)] * 2 + [4 * share.parameters]


def test_tensor_ranks_copy_their_own_part() -> None:
    share = block(Strategy(data=2, tensor=4, zero=3))
    assert copied_bytes(share)[0] == 4 * share.parameters
    assert share.parameters == WEIGHTS // 4 + 3 * 1024  # norms are whole on every rank


@pytest.mark.parametrize("strategy", [Strategy(data=4), Strategy(data=4, zero=2), Strategy(zero=3)])
def test_nothing_is_copied_where_nothing_is_gathered(strategy: Strategy) -> None:
    assert copied_bytes(block(strategy)) == []


def test_other_stacks_gather_into_place() -> None:
    assert copied_bytes(block(Strategy(data=4, zero=3), "compiled")) == []


def test_experts_that_no_other_rank_has_are_not_copied() -> None:
    alone, shared = (
        block(Strategy(data=data, expert=8, zero=3), model="mixtral-8x7b") for data in (8, 16)
    )  # fmt: skip
    assert copied_bytes(alone)[0] == 4 * alone.parameters
    assert copied_bytes(shared)[0] == 4 * (shared.parameters + shared.expert_parameters)


def test_a_layer_that_is_computed_again_is_copied_once_for_both() -> None:
    prices = Pace(KeptPrices(pricer("h100")))
    again, plain = (block(Strategy(data=4, zero=3, recompute=kind)) for kind in ("full", "none"))
    none = block(Strategy(data=1, recompute="full"))
    assert not any(isinstance(op, FlatCopies) for op in computed_again(again))
    seconds = [
        sum(move.amount for move in walk(share, Strategy(), prices) if move.act is Act.COMPUTE)
        for walk, share in (
            (recompute_moves, again), (forward_moves, none), (backward_moves, again), (backward_moves, plain),
        )
    ]  # fmt: skip
    assert seconds[0] == pytest.approx(seconds[1])
    assert seconds[2] == pytest.approx(seconds[0] + seconds[3])
