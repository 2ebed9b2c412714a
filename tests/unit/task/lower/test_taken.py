"""What collectives take from the kernels beside them, by hand."""

from __future__ import annotations

import pytest

from ropewalk.device.device import device
from ropewalk.device.pricer import pricer
from ropewalk.hardware import read_cluster
from ropewalk.strategy import KeptPrices, Order, Strategy, shares_of
from ropewalk.strategy.prices import Inside, Pace
from ropewalk.task.lower.moves import backward_moves, forward_moves
from ropewalk.task.lower.passes import Walk, Walks, passes_of
from ropewalk.task.step import Act
from ropewalk.task.transport import Transport
from ropewalk.timetable.passes import Pass
from ropewalk.training.inside import CHANNELS, inside_of
from ropewalk.training.network import NetworkUse
from ropewalk.workload.zoo import build
from ropewalk.workload.zoo.stacks import STACKS

TAKEN = 0.125
WEIGHTS = 2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048
"""Of a block of Llama 3.2 1B."""


def computed(walk: Walk, inside: Inside | None, strategy: Strategy, stack: str = "megatron") -> float:
    block = shares_of(build(f"llama-3.2-1b:layers=2,stack={stack}", 1, 2048), strategy)[1]
    moves = walk(block, strategy, Pace(KeptPrices(pricer("h100"), inside)))
    return sum(move.amount for move in moves if move.act is Act.COMPUTE)


def taken(walk: Walk, bytes_s: float, strategy: Strategy, stack: str = "megatron") -> float:
    """Seconds by which a pass of a block is longer in servers of two GPUs."""
    inside = Inside(2, bytes_s, 0.0, across_bytes_s=bytes_s / 8, taken=TAKEN)
    return computed(walk, inside, strategy, stack) - computed(walk, None, strategy, stack)


ZERO = Strategy(data=2, zero=3)


@pytest.mark.parametrize("stack", ["compiled", "megatron", "fsdp2"])
def test_a_pass_is_longer_by_the_part_that_its_collectives_take_while_they_run(stack: str) -> None:
    fast = 1e13
    assert taken(forward_moves, fast, ZERO, stack) == pytest.approx(TAKEN * 2 * WEIGHTS / fast)
    assert taken(backward_moves, fast, ZERO, stack) == pytest.approx(TAKEN * 4 * WEIGHTS / fast)


def test_between_servers_they_run_for_longer() -> None:
    fast = 1e13
    across = taken(forward_moves, fast, Strategy(data=4, zero=3))
    assert across == pytest.approx(4 * TAKEN * 2 * WEIGHTS / fast)  # an eighth of the speed, by two GPUs of a server


def test_no_more_is_taken_than_there_is_while_the_kernels_run() -> None:
    alone = computed(forward_moves, None, ZERO)
    assert taken(forward_moves, 1.0, ZERO) == pytest.approx(alone / (1 - TAKEN) - alone)


@pytest.mark.parametrize(("strategy", "stack"), [(Strategy(data=2, zero=2), "megatron"), (ZERO, "eager")])
def test_nothing_is_taken_where_nothing_is_gathered_or_the_stack_does_not_count_it(
    strategy: Strategy, stack: str
) -> None:
    assert taken(forward_moves, 1e13, strategy, stack) == 0


def test_a_cluster_says_how_fast_its_gpus_exchange_and_what_part_a_collective_takes() -> None:
    found = inside_of(
        read_cluster("dgx-h100:2"),
        NetworkUse(transport=Transport()),
        "dp-tp-pp",
        device("h100"),
        STACKS["megatron"].make,
    )
    assert found is not None
    assert (found.gpus, found.bytes_s, found.across_bytes_s, found.adjacent) == (8, 450e9, 50e9, False)
    assert found.taken == CHANNELS / 132


def lowered(strategy: Strategy, inside: Inside, pick: Pass, *, reduces: bool, model: str = "llama-3.2-1b") -> float:
    """Seconds that a stage computes in a pass."""
    shares = shares_of(build(f"{model}:layers=4,stack=megatron", 1, 2048), strategy)
    walks = Walks(Pace(KeptPrices(pricer("h100"), inside)))
    made = passes_of(range(len(shares)), shares, strategy, walks, "stage 0", condense=True)
    legs = made.legs(pick, reduces=reduces)
    return sum(move.amount for leg in legs for move in leg.moves if move.act is Act.COMPUTE)


def test_gradients_take_from_the_layers_behind_them_in_the_pass_that_reduces_them() -> None:
    fast, strategy = 1e13, Strategy(data=2, zero=1, order=Order(fusion=1.0))
    there, none = (Inside(2, fast, 0.0, across_bytes_s=fast, taken=part) for part in (TAKEN, 0.0))
    more = [
        lowered(strategy, there, Pass.BACKWARD, reduces=one) - lowered(strategy, none, Pass.BACKWARD, reduces=one)
        for one in (False, True)
    ]
    # Of two ranks each sends half of the gradients of four blocks, two bytes each; the embedding's are the last.
    assert more[0] == 0
    assert more[1] == pytest.approx(TAKEN * 4 * WEIGHTS / fast, rel=1e-3)


def test_of_passes_side_by_side_exchanges_of_one_take_from_the_other() -> None:
    mixture, fast = "qwen3-30b-a3b", 1e13
    there, none = (Inside(8, fast, 0.0, across_bytes_s=fast, taken=part) for part in (TAKEN, 0.0))
    for schedule, takes in (("1f1b", False), ("1f1b-overlap", True)):
        strategy = Strategy(data=8, expert=8, schedule=schedule)
        with_it, without = (
            lowered(strategy, inside, Pass.FORWARD, reduces=False, model=mixture) for inside in (there, none)
        )
        assert (with_it > without) is takes
