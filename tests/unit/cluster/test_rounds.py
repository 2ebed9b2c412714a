"""Collectives as the network sees them: who sends to whom, how often, how much."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.cluster.collectives import Group
from ropewalk.cluster.collectives import hierarchical_ring as proved_hierarchical_ring
from ropewalk.cluster.collectives import ring as proved_ring
from ropewalk.cluster.rounds import COLLECTIVES, MOST_PATTERNS, groups_of, patterns_of
from ropewalk.collective import Program, halving_doubling_all_reduce, shift_all_to_all, xor_all_to_all
from ropewalk.errors import ClusterError


def _sent(collective: str, size: int, inside: int = 1) -> dict[tuple[int, int], float]:
    """Part of the vector that goes from one member to another, over all rounds."""
    sent: dict[tuple[int, int], float] = {}
    for pattern in COLLECTIVES[collective](size, inside):
        for pair in zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True):
            sent[pair] = sent.get(pair, 0.0) + pattern.share * pattern.repeat
    return sent


def _program(program: Program, chunks: float) -> dict[tuple[int, int], float]:
    sent: dict[tuple[int, int], float] = {}
    for each in program.rounds:
        pattern = each.pattern
        for src, dst, count in zip(pattern.src.tolist(), pattern.dst.tolist(), pattern.chunks.tolist(), strict=True):
            sent[src, dst] = sent.get((src, dst), 0.0) + count / chunks
    return sent


@pytest.mark.parametrize(
    ("collective", "program", "inside"),
    [
        ("ring", proved_ring(Group((8,))), 1),
        ("hierarchical-ring", proved_hierarchical_ring(Group((8,), 4)), 4),
        ("halving-doubling", halving_doubling_all_reduce(8), 1),
    ],
)
def test_bytes_between_ranks_are_those_of_the_proved_program(collective: str, program: Program, inside: int) -> None:
    assert _sent(collective, 8, inside) == pytest.approx(_program(program, program.chunks))


@pytest.mark.parametrize(("collective", "make"), [("all-to-all", shift_all_to_all), ("all-to-all-xor", xor_all_to_all)])
def test_all_to_all_sends_the_same_to_everybody(collective: str, make: object) -> None:
    assert _sent(collective, 8) == pytest.approx({(a, b): 1 / 8 for a in range(8) for b in range(8) if a != b})


def test_a_long_all_to_all_is_seen_through_some_of_its_rounds() -> None:
    patterns = list(COLLECTIVES["all-to-all"](1024, 1))
    assert len(patterns) == MOST_PATTERNS
    assert sum(pattern.repeat for pattern in patterns) == pytest.approx(1023)
    shifts = [int(pattern.dst[0]) for pattern in patterns]
    assert len(set(shifts)) == MOST_PATTERNS
    assert min(shifts) >= 1
    assert max(shifts) <= 1023


def test_halving_doubling_of_six_folds_two_onto_their_neighbours() -> None:
    patterns = list(COLLECTIVES["halving-doubling"](6, 1))
    assert [pattern.src.tolist() for pattern in patterns] == [[1, 3], [0, 2, 4, 5], [0, 2, 4, 5], [0, 2]]
    assert [pattern.dst.tolist() for pattern in patterns] == [[0, 2], [2, 0, 5, 4], [4, 5, 0, 2], [1, 3]]
    assert [pattern.share * pattern.repeat for pattern in patterns] == [1.0, 1.0, 0.5, 1.0]


def test_servers_with_unequal_numbers_of_ranks_share_one_flat_ring() -> None:
    servers = np.array([0, 0, 0, 1, 1])
    ((src, dst, _),) = patterns_of("hierarchical-ring", 5, 0, 1, servers)
    assert (dst == (src + 1) % 5).all()


def test_groups_of_tensor_and_data_ranks_interleave() -> None:
    assert groups_of(8, 4, 1).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups_of(8, 0, 4).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_groups_that_do_not_fill_the_job_and_unknown_collectives_are_refused() -> None:
    with pytest.raises(ClusterError, match="do not fill 6 GPUs"):
        groups_of(6, 4, 1)
    with pytest.raises(ClusterError, match="no collective 'gossip'"):
        list(patterns_of("gossip", 4, 0, 1, np.arange(4)))
