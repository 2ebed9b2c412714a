"""How ranks that share a sequence meet in attention: gathered, round a ring, or by heads (Ulysses)."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_models import FlopPrices

from ropewalk.device.numbers import Numbers
from ropewalk.errors import StrategyError
from ropewalk.strategy import Strategy, check
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.shares import Share, kept_bytes, shares_of
from ropewalk.task.lower.moves import Move, Scope, backward_moves, condensed, forward_moves
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion
from ropewalk.training.study import answer
from ropewalk.workload.zoo import build

TINY = "llama:layers=2,hidden=128,heads=8,kv_heads=4,ffn=128,vocabulary=256"
TOKENS, RANKS, BYTES = 64, 4, 2


def block(exchange: str, **others: Any) -> Share:
    return shares_of(build(TINY, 1, TOKENS), Strategy(context=RANKS, context_exchange=exchange, **others))[1]


def moves(exchange: str, walk: Any = forward_moves, **others: Any) -> list[Move]:
    strategy = Strategy(context=RANKS, context_exchange=exchange, **others)
    return walk(block(exchange, **others), strategy, Pace(KeptPrices(FlopPrices())))


def met(found: list[Move]) -> list[tuple[Act, float, bool]]:
    return [(move.act, move.amount, move.beside) for move in found if move.scope is Scope.CONTEXT]


KEYS = 2 * TOKENS * 4 * 16 * BYTES
"""Bytes of the keys and values of the whole sequence."""
QUERIES = TOKENS * 8 * 16 * BYTES


def test_a_ring_carries_what_is_gathered_beside_attention() -> None:
    assert met(moves("gather")) == [(Act.ALL_GATHER, KEYS, False)]
    assert met(moves("ring")) == [(Act.ALL_GATHER, KEYS, True)]


def test_on_the_way_back_keys_come_round_again_with_their_gradients() -> None:
    assert met(moves("gather", backward_moves)) == [(Act.REDUCE_SCATTER, KEYS, False)]
    assert met(moves("ring", backward_moves)) == [(Act.ALL_GATHER, KEYS, True), (Act.REDUCE_SCATTER, KEYS, True)]


def test_heads_are_handed_out_before_attention_and_back_behind_it() -> None:
    sent = (QUERIES + KEYS) / RANKS, QUERIES / RANKS
    assert met(moves("ulysses")) == [(Act.ALL_TO_ALL, size, False) for size in sent]
    assert met(moves("ulysses", backward_moves)) == [(Act.ALL_TO_ALL, size, False) for size in reversed(sent)]


@pytest.mark.parametrize("walk", [forward_moves, backward_moves])
@pytest.mark.parametrize("exchange", ["ring", "ulysses"])
def test_ranks_compute_as_much_however_they_meet(exchange: str, walk: Any) -> None:
    computed, gathered = (
        sum(move.amount for move in moves(name, walk) if move.act is Act.COMPUTE) for name in (exchange, "gather")
    )
    assert computed == pytest.approx(gathered, rel=1e-12)


def test_three_of_four_parts_of_attention_hide_what_goes_round() -> None:
    found = moves("ring")
    at = next(place for place, move in enumerate(found) if move.beside)
    attention = sum(kernel.flops for op in block("ring").layer.operators for kernel in op.forward()
                    if kernel.kind == "attention")  # fmt: skip
    assert found[at + 1].amount == pytest.approx(0.75 * attention)


def test_summing_up_keeps_apart_what_runs_beside_a_ring() -> None:
    found = [(move.act, move.beside) for move in condensed(moves("ring"), "stage")]
    assert found == [(Act.COMPUTE, False), (Act.ALL_GATHER, True), (Act.COMPUTE, False), (Act.COMPUTE, False)]


def test_a_ring_keeps_the_keys_of_its_own_part_alone() -> None:
    gathered, ring = (kept_bytes(block(name), Numbers(BYTES)) for name in ("gather", "ring"))
    assert gathered - ring == KEYS * (1 - 1 / RANKS)


@pytest.fixture(scope="module")
def seconds() -> dict[tuple[str, str], float]:
    model = "llama:layers=2,hidden=1024,heads=8,kv_heads=8,vocabulary=256"
    return {
        (exchange, detail): answer(
            TrainingQuestion(
                model, gpus=4, batch=1, sequence=16384, context=4, detail=detail,
                usual=Strategy(context_exchange=exchange, optimiser="none"),
            )
        ).run.makespan
        for exchange in ("gather", "ring", "ulysses")
        for detail in ("layer", "stage")
    }  # fmt: skip


def test_a_ring_that_is_hidden_saves_what_gathering_would_take(seconds: dict[tuple[str, str], float]) -> None:
    assert seconds["ring", "layer"] < seconds["ulysses", "layer"] < seconds["gather", "layer"]


@pytest.mark.parametrize("exchange", ["gather", "ring", "ulysses"])
def test_both_details_agree(seconds: dict[tuple[str, str], float], exchange: str) -> None:
    assert seconds[exchange, "stage"] == pytest.approx(seconds[exchange, "layer"], rel=1e-9)


@pytest.mark.parametrize(
    ("model", "strategy", "complaint"),
    [
        (TINY, {"context_exchange": "rings"}, "there is no context-exchange 'rings': did you mean ring"),
        (f"{TINY},window=16", {"context_exchange": "ring"}, "use windowed attention: use gather or ulysses"),
        (f"{TINY},attention=written", {"context_exchange": "ring"}, "needs fused attention: give attention=fused"),
        (TINY, {"context_exchange": "ring", "recompute": "selective"}, "use recompute none or full"),
        (TINY, {"context_exchange": "ulysses", "tensor": 4}, "distributes 8 heads over 4 context x 4 tensor ranks"),
    ],
)
def test_exchanges_that_a_model_cannot_have_are_refused(model: str, strategy: dict[str, Any], complaint: str) -> None:
    with pytest.raises(StrategyError, match=complaint):
        check(Strategy(context=4, **strategy), build(model, 1, TOKENS))
