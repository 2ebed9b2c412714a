"""Halving-doubling, double trees, broadcasts, reduces and all-to-alls."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropewalk.collectives import (
    binomial_broadcast,
    binomial_reduce,
    chain_broadcast,
    chain_reduce,
    direct_all_to_all,
    double_tree_all_reduce,
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
    hierarchical_all_to_all,
    shift_all_to_all,
    xor_all_to_all,
)
from ropewalk.collectives.double_tree import in_order_tree
from ropewalk.errors import ProgramError

SIZES = [*range(2, 21), 27, 64]


@pytest.mark.parametrize("ranks", SIZES)
def test_halving_doubling_takes_two_log_n_rounds_and_folds_the_rest(ranks):
    program = halving_doubling_all_reduce(ranks)
    program.check()
    doublings = ranks.bit_length() - 1
    core = 2**doublings
    folds = ranks > core
    assert len(program.rounds) == 2 * doublings + 2 * folds
    assert program.sent_chunks().max() == 2 * (core - 1) + folds * core


def test_halving_doubling_sends_half_the_buffer_to_the_nearest_rank_first():
    program = halving_doubling_all_reduce(8)
    scatter = [step.pattern for step in program.rounds[:3]]
    assert [(int(pattern.src[0] ^ pattern.dst[0]), int(pattern.chunks[0])) for pattern in scatter] == [
        (1, 4),
        (2, 2),
        (4, 1),
    ]
    assert (program.sent_chunks() == 14).all()


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 64])
def test_halving_and_doubling_alone_take_log_n_rounds(ranks):
    for program in (halving_reduce_scatter(ranks), doubling_all_gather(ranks)):
        program.check()
        assert len(program.rounds) == math.log2(ranks)
        assert (program.sent_chunks() == ranks - 1).all()


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("segments", [1, 3, 16])
def test_double_tree_is_proved_and_pipelines_its_segments(ranks, segments):
    program = double_tree_all_reduce(ranks, segments)
    program.check()
    depth = math.floor(math.log2(ranks))
    assert len(program.rounds) == 2 * depth + segments - 1
    assert program.lanes == 2
    assert program.sent_chunks().sum() == 2 * (ranks - 1) * program.chunks
    assert program.sent_chunks().max() <= 2 * program.chunks


@pytest.mark.parametrize("ranks", SIZES)
def test_every_rank_is_an_inner_node_of_at_most_one_of_the_two_trees(ranks):
    inner: list[set[int]] = []
    program = double_tree_all_reduce(ranks, 1)
    for lane in (0, 1):
        parents: set[int] = set()
        for pattern in program.patterns:
            up = pattern.reduces & (pattern.lane == lane)
            parents |= set(pattern.dst[up].tolist())
        inner.append(parents)
    assert all(inner)
    assert not inner[0] & inner[1]


@pytest.mark.parametrize("ranks", [1, *SIZES])
def test_the_in_order_tree_is_binary_and_has_one_root(ranks):
    parent = in_order_tree(ranks)
    assert np.count_nonzero(parent < 0) == 1
    assert np.bincount(parent[parent >= 0], minlength=ranks).max() <= 2


def test_a_long_pipeline_shares_its_patterns():
    program = double_tree_all_reduce(16, 200)
    assert len(program.rounds) == 207
    assert len(program.patterns) < 20


@pytest.mark.parametrize("ranks", SIZES)
def test_binomial_trees_take_log_n_rounds_from_any_root(ranks):
    for root in {0, ranks // 2, ranks - 1}:
        for program in (binomial_broadcast(ranks, root), binomial_reduce(ranks, root)):
            program.check()
            assert len(program.rounds) == math.ceil(math.log2(ranks))
            assert program.sends == ranks - 1


@pytest.mark.parametrize("ranks", [2, 3, 8, 20])
@pytest.mark.parametrize("segments", [1, 4, 30])
def test_chains_take_n_minus_two_plus_s_rounds(ranks, segments):
    for program in (chain_broadcast((ranks,), segments, ranks - 1), chain_reduce((ranks,), segments, 1)):
        program.check()
        assert len(program.rounds) == ranks - 2 + segments
        assert program.sends == (ranks - 1) * segments


@pytest.mark.parametrize("ranks", SIZES)
def test_all_to_all_by_shifts_sends_and_receives_once_a_round(ranks):
    program = shift_all_to_all(ranks)
    program.check()
    assert len(program.rounds) == ranks - 1
    assert program.buffer_chunks == ranks
    for pattern in program.patterns:
        assert np.array_equal(np.sort(pattern.dst), np.arange(ranks))
    assert (program.sent_chunks() == ranks - 1).all()


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 64])
def test_all_to_all_by_xor_swaps_between_partners(ranks):
    program = xor_all_to_all(ranks)
    program.check()
    assert len(program.rounds) == ranks - 1
    for pattern in program.patterns:
        assert np.array_equal(pattern.dst[pattern.dst], pattern.src)


@pytest.mark.parametrize("ranks", SIZES)
def test_all_to_all_at_once_takes_one_round(ranks):
    program = direct_all_to_all(ranks)
    program.check()
    assert len(program.rounds) == 1
    assert (program.sent_chunks() == ranks - 1).all()


@pytest.mark.parametrize(("groups", "size"), [(2, 2), (2, 5), (5, 2), (3, 4), (8, 8)])
def test_hierarchical_all_to_all_sends_fewer_larger_messages(groups, size):
    program = hierarchical_all_to_all(groups, size)
    program.check()
    assert program.sends == groups * size * (groups - 1 + size - 1)
    assert (program.sent_chunks() == (size - 1) * groups + (groups - 1) * size).all()
    within, across = (step.pattern for step in program.rounds)
    assert (within.src // size == within.dst // size).all()
    assert (across.src % size == across.dst % size).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: xor_all_to_all(6), "6 is not a power of two: give 4 or 8 ranks, or use the shifted one"),
        (lambda: xor_all_to_all(1), "give at least 2 ranks"),
        (lambda: shift_all_to_all(1), "give at least 2 ranks"),
        (lambda: direct_all_to_all(1), "give at least 2 ranks"),
        (lambda: hierarchical_all_to_all(7, 1), "use the shifted one"),
        (lambda: halving_reduce_scatter(6), "6 is not a power of two: give 4 or 8 ranks, or use a ring"),
        (lambda: halving_doubling_all_reduce(1), "give at least 2 ranks"),
        (lambda: double_tree_all_reduce(1), "give at least 2 ranks"),
        (lambda: double_tree_all_reduce(4, 0), "give at least 1"),
        (lambda: binomial_reduce(1), "give at least 2 ranks"),
        (lambda: binomial_broadcast(4, 4), "give 0…3"),
        (lambda: chain_broadcast((4,), 0), "give at least 1"),
    ],
)
def test_sizes_that_do_not_exist_are_refused_with_a_remedy(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
