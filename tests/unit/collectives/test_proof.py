"""A proof that cannot fail proves nothing: broken programs must be caught, each for its own reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives import (
    Pattern,
    Program,
    Round,
    arrows,
    double_tree_all_reduce,
    everyone,
    mesh_all_reduce,
    only,
    owner,
    ring_all_reduce,
)
from ropewalk.collectives import proof as proof_module
from ropewalk.errors import ProofError


def carrying(*chunks: list[int]):
    start = np.cumsum([0, *map(len, chunks)])
    return lambda: (start, np.array([chunk for send in chunks for chunk in send], np.int64))


def two_ranks(*rounds: Round, chunks: int = 1) -> Program:
    return Program("test", 2, chunks, rounds, everyone(2), everyone(2))


def with_round(program: Program, number: int, changed: Round) -> Program:
    rounds = list(program.rounds)
    rounds[number] = changed
    return replace(program, rounds=tuple(rounds))


def test_two_ranks_that_reduce_and_hand_back_are_proved():
    down = Round(arrows([0], [1], 1, reduces=True), carrying([0]))
    up = Round(arrows([1], [0], 1, reduces=False), carrying([0]))
    two_ranks(down, up).check()


def test_a_program_without_rounds_leaves_everybody_with_its_own_input():
    with pytest.raises(ProofError, match="rank 0 ends with a chunk 0 that lacks the input of rank 1"):
        two_ranks().check()


def test_a_doubled_reduce_counts_a_contribution_too_often():
    program = mesh_all_reduce(4)
    with pytest.raises(ProofError, match="too often"):
        replace(program, rounds=(program.rounds[0], *program.rounds)).check()


def test_adding_what_should_be_overwritten_counts_too_often():
    program = ring_all_reduce([range(4)])
    gather = program.rounds[3]
    adding = replace(gather.pattern, reduces=np.ones(4, bool))
    with pytest.raises(ProofError, match="too often"):
        with_round(program, 3, Round(adding, gather.chunks)).check()


def test_hundreds_of_doublings_never_wrap_around_to_a_correct_sum():
    swing = [
        Round(arrows([0], [1], 1, reduces=True), carrying([0])),
        Round(arrows([1], [0], 1, reduces=True), carrying([0])),
    ]
    with pytest.raises(ProofError, match="too often"):
        two_ranks(*(swing * 200)).check()


def test_a_swapped_chunk_is_found():
    program = ring_all_reduce([range(5)])
    start, ids = program.rounds[2].chunks()
    swapped = ids.copy()
    swapped[[0, 1]] = ids[[1, 0]]
    with pytest.raises(ProofError):
        with_round(program, 2, Round(program.rounds[2].pattern, lambda: (start, swapped))).check()


@pytest.mark.parametrize("build", [lambda: ring_all_reduce([range(5)]), lambda: double_tree_all_reduce(5, 2)])
def test_rounds_in_the_wrong_order_are_found(build):
    program = build()
    rounds = list(program.rounds)
    rounds[1], rounds[-2] = rounds[-2], rounds[1]
    with pytest.raises(ProofError):
        replace(program, rounds=tuple(rounds)).check()


def test_overwriting_what_should_be_added_loses_a_contribution():
    send = Round(arrows([0], [1], 1, reduces=True), carrying([0]))
    program = Program("test", 3, 1, (send,), pre=only(3, [0, 1]), post=only(3, [1]))
    program.check()
    overwriting = Round(arrows([0], [1], 1, reduces=False), carrying([0]))
    with pytest.raises(ProofError, match="rank 1 ends with a chunk 0 that lacks the input of rank 1"):
        replace(program, rounds=(overwriting,)).check()


@pytest.mark.parametrize(
    ("pattern", "chunks", "message"),
    [
        (arrows([0], [2], 1, reduces=True), [[0]], "a rank outside 0…1"),
        (arrows([1], [1], 1, reduces=True), [[0]], "rank 1 sends to itself"),
        (arrows([0], [1], 1, reduces=True), [[7]], "a chunk outside 0…1"),
        (arrows([0], [1], 2, reduces=True), [[0]], "promises other sizes"),
        (arrows([0], [1], 0, reduces=True), [[]], "carries no chunk"),
        (arrows([0], [1], 1, reduces=True, lane=-1), [[0]], "negative lane"),
        (arrows([0, 1], [1, 0], 1, reduces=True), [[0], [0]], "sends and receives the same chunk"),
        (arrows([0], [1], 2, reduces=False), [[0, 0]], "overwritten and written by another send"),
    ],
)
def test_malformed_rounds_are_refused(pattern, chunks, message):
    with pytest.raises(ProofError, match=message):
        two_ranks(Round(pattern, carrying(*chunks)), chunks=2).check()


def test_columns_of_different_length_are_refused():
    good = arrows([0], [1], 1, reduces=True)
    bad = Pattern(good.src, good.dst, good.chunks, np.ones(2, bool), good.lane)
    with pytest.raises(ProofError, match="different lengths"):
        two_ranks(Round(bad, carrying([0]))).check()


def test_a_chunk_may_not_change_its_lane_between_rounds_nor_within_one():
    first = Round(arrows([0], [1], 1, reduces=True, lane=0), carrying([0]))
    second = Round(arrows([1], [0], 1, reduces=False, lane=1), carrying([0]))
    with pytest.raises(ProofError, match="two lanes"):
        two_ranks(first, second).check()
    both = arrows([0, 0], [1, 2], 1, reduces=True)
    split = Round(replace(both, lane=np.array([0, 1], np.int32)), carrying([0], [0]))
    with pytest.raises(ProofError, match="two lanes"):
        Program("test", 3, 1, (split,), everyone(3), everyone(3)).check()


def test_proofs_in_small_blocks_find_the_same(monkeypatch):
    monkeypatch.setattr(proof_module, "PROOF_BYTES", 1)
    program = ring_all_reduce([range(6)], both_ways=True)
    program.check()
    last = program.rounds[-1]
    start, ids = last.chunks()
    kept = ids != 11
    fewer = Pattern(*(column[kept] for column in vars(last.pattern).values()))
    with pytest.raises(ProofError, match="ends with a chunk 11 "):
        with_round(program, -1, Round(fewer, lambda: (start[:-1], ids[kept]))).check()


def test_contributors_beyond_the_first_word_of_bits_count():
    ranks = 130
    gather = Round(arrows(np.arange(1, ranks), np.zeros(ranks - 1), 1, reduces=True), carrying(*[[0]] * (ranks - 1)))
    program = Program("star", ranks, 1, (gather,), everyone(ranks), only(ranks, [0]))
    program.check()
    fewer = Round(arrows(np.arange(1, ranks - 1), np.zeros(ranks - 2), 1, reduces=True), carrying(*[[0]] * (ranks - 2)))
    with pytest.raises(ProofError, match="lacks the input of rank 129"):
        replace(program, rounds=(fewer,)).check()


def test_owner_names_one_rank_for_each_chunk():
    condition = owner(3, lambda chunk: chunk % 3)
    assert condition(np.array([0, 4])).tolist() == [[True, False], [False, True], [False, False]]
