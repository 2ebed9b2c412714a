"""What collectives take from the kernels beside them, by hand."""

from __future__ import annotations

import pytest

from ropewalk.device.device import device
from ropewalk.device.pricer import pricer
from ropewalk.hardware import read_cluster
from ropewalk.strategy import PriceList, Strategy, shares_of
from ropewalk.strategy.prices import Inside, Pace
from ropewalk.task.lower.moves import backward_moves, forward_moves
from ropewalk.task.lower.passes import Walk
from ropewalk.task.step import Act
from ropewalk.task.transport import Transport
from ropewalk.training.inside import CHANNELS, inside_of
from ropewalk.training.network import NetworkUse
from ropewalk.workload.zoo import build

TAKEN = 0.125
WEIGHTS = 2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048
"""Of a block of Llama 3.2 1B."""


def computed(walk: Walk, inside: Inside | None, strategy: Strategy, stack: str = "megatron") -> float:
    block = shares_of(build(f"llama-3.2-1b:layers=2,stack={stack}", 1, 2048), strategy)[1]
    moves = walk(block, strategy, Pace(PriceList(pricer("h100"), inside)))
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
    found = inside_of(read_cluster("dgx-h100:2"), NetworkUse(transport=Transport()), "dp-tp-pp", device("h100"))
    assert found is not None
    assert (found.gpus, found.bytes_s, found.across_bytes_s, found.adjacent) == (8, 450e9, 50e9, False)
    assert found.taken == CHANNELS / 132
