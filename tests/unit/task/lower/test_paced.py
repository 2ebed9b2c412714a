"""How far the host that launches a step slows it down."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.device.pricer import pricer
from ropewalk.device.work import Work
from ropewalk.strategy.prices import Inside, KeptPrices, Pace
from ropewalk.strategy.shares import Share, shares_of
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import backward_moves, forward_moves
from ropewalk.task.lower.paced import (
    SLOWEST_OF_MORE,
    SLOWEST_OF_TWO,
    Launched,
    away_s,
    launched,
    stretched_s,
    together,
    waits_for_counts,
)
from ropewalk.task.step import Act
from ropewalk.workload.exchange import Exchange
from ropewalk.workload.operator import Operator
from ropewalk.workload.zoo import build

SECONDS = st.floats(0.01, 10.0)
WORK = st.builds(Work, SECONDS, SECONDS)
LAUNCHED = st.builds(Launched, WORK, WORK, SECONDS, SECONDS, st.booleans())
NONE = Work()
SMALL = "qwen3-30b-a3b:layers=2,stack=megatron"


def pace(one: Launched, *, side_by_side: bool = False) -> float:
    return one.pace(4, NONE, side_by_side=side_by_side)


@given(LAUNCHED)
def test_no_host_makes_a_gpu_faster(one: Launched) -> None:
    assert pace(one) >= 1 - 1e-9
    assert pace(one, side_by_side=True) >= 1 - 1e-9


@given(LAUNCHED)
def test_waiting_for_counts_never_helps(one: Launched) -> None:
    assert pace(replace(one, waits=True)) >= pace(replace(one, waits=False)) * (1 - 1e-9)


@given(LAUNCHED)
def test_the_host_gains_while_tokens_travel(one: Launched) -> None:
    quiet = replace(one, forward_away_s=0.0, backward_away_s=0.0)
    assert pace(one) <= pace(quiet) * (1 + 1e-9)


@given(LAUNCHED, LAUNCHED)
def test_layers_together_are_no_slower_than_one_after_the_other(one: Launched, other: Launched) -> None:
    """What the planner's bounds rest on: the stretch of a sum is at most the sum of stretches."""
    waits = one.waits or other.waits
    both = replace(one, waits=waits), replace(other, waits=waits)

    def gpu_s(some: Launched) -> float:
        return some.forward.gpu_s + some.backward.gpu_s

    apart = sum(pace(some) * gpu_s(some) for some in both)
    whole = together((one, other))
    assert whole.waits is waits
    assert pace(whole) * gpu_s(whole) <= apart * (1 + 1e-9)


def test_an_exchange_as_long_as_the_launches_hides_them() -> None:
    assert stretched_s(Work(1.0, 1.0), 0.0) == pytest.approx(2 ** (1 / 3))
    assert stretched_s(Work(1.0, 1.0), 100.0) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ("", True),
        (",dispatch=hybridep", True),
        (",graphs=router", True),
        (",graphs=step", False),
        (",capacity=1", False),
    ],
)
def test_hosts_wait_for_counts_unless_tokens_are_dropped_or_the_step_is_a_graph(options: str, waits: bool) -> None:
    assert waits_for_counts(build(SMALL + options, 1, 512).layers[1].operators) is waits


def test_other_code_multiplies_without_counts_on_the_host() -> None:
    assert not waits_for_counts(build("qwen3-30b-a3b:layers=2", 1, 512).layers[1].operators)


def test_a_layer_is_away_while_its_tokens_travel() -> None:
    listed = KeptPrices(pricer("h100", "bf16"), Inside(8, 400e9, 0.0, across_bytes_s=50e9))
    prices = Pace(listed)

    def away(**split: int | bool) -> tuple[float, float]:
        strategy = Strategy(**split)  # type: ignore[arg-type]
        share = shares_of(build(SMALL, 1, 512), strategy)[1]
        moves = forward_moves(share, strategy, prices), backward_moves(share, strategy, prices)
        one = launched(share, listed, *moves)
        assert one.forward_away_s == away_s(moves[0], share.split, listed.inside)
        assert away_s(moves[0], share.split, None) == 0.0
        return one.forward_away_s, one.backward_away_s

    assert away() == (0.0, 0.0)
    slots, hidden = 512 * 8, 2048
    assert away(data=8, expert=8)[0] == pytest.approx(2 * slots * hidden * 2 * 7 / 8 / 400e9)
    assert away(tensor=2) == (0.0, 0.0)


@pytest.mark.parametrize("bytes_s", [1e9, 400e9])
def test_of_an_exchange_beside_shared_experts_a_gpu_waits_for_what_they_do_not_hide(bytes_s: float) -> None:
    listed = KeptPrices(pricer("h100", "bf16"), Inside(8, bytes_s, 0.0, across_bytes_s=bytes_s))
    share_of = {
        meanwhile: shares_of(
            build("deepseek-v2-lite:layers=2,stack=megatron", 1, 4096),
            Strategy(data=8, expert=8, shared_overlap=meanwhile),
        )[2]
        for meanwhile in (False, True)
    }
    strategy, prices = Strategy(data=8, expert=8), Pace(listed)
    for walk in (forward_moves, backward_moves):
        apart, beside = (
            away_s(walk(share, strategy, prices), share.split, listed.inside) for share in share_of.values()
        )
        computed_s = sum(
            behind.amount
            for move, behind in pairwise(walk(share_of[True], strategy, prices))
            if move.beside and behind.act is Act.COMPUTE
        )
        assert computed_s > 0
        assert beside == pytest.approx(apart - computed_s) if bytes_s == 1e9 else beside < apart


@pytest.mark.parametrize(("ranks", "factor"), [(1, 1.0), (2, SLOWEST_OF_TWO), (8, SLOWEST_OF_MORE)])
def test_where_hosts_wait_in_every_layer_the_slowest_counts(ranks: int, factor: float) -> None:
    listed = KeptPrices(pricer("h100", "bf16"), Inside(8, 400e9, 0.0, across_bytes_s=50e9))
    strategy = Strategy(data=8, expert=ranks)

    def host_s(options: str) -> float:
        share = shares_of(build(SMALL + options, 1, 512), strategy)[1]
        return launched(share, listed, [], []).forward.host_s / listed.forward(computed_by(share)).host_s

    assert host_s("") == pytest.approx(factor)
    assert host_s(",capacity=1") == pytest.approx(1.0)


def computed_by(share: Share) -> tuple[Operator, ...]:
    return tuple(operator for operator in share.layer.operators if not isinstance(operator, Exchange))
