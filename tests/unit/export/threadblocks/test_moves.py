"""Places of chunks on their way, and what has to wait for what."""

import pytest
from plan_worlds import overtaken_all_reduce, program_of

from ropewalk.collectives import everyone, halving_doubling_all_reduce, owner, ring_all_reduce, ring_reduce_scatter
from ropewalk.errors import ProgramError
from ropewalk.export.threadblocks.blocks import deal
from ropewalk.export.threadblocks.layout import layout_of
from ropewalk.export.threadblocks.moves import moves_of


def moves_in(program, collective):
    return moves_of(program, layout_of(program, collective))


def test_a_ring_reads_the_input_first_and_sums_in_the_output():
    moves = moves_in(ring_all_reduce([[0, 1, 2]]), "allreduce")
    first, second = moves.moves[0].runs[0], next(m for m in moves.moves if m.round == 1).runs[0]
    assert (first.source[0], first.operand[0], first.target[0]) == ("i", "i", "o")
    assert (second.source[0], second.operand[0], second.target[0]) == ("o", "i", "o")
    assert moves.scratch == [0, 0, 0]


def test_what_only_passes_through_lives_in_scratch():
    moves = moves_in(ring_reduce_scatter([[0, 1, 2, 3]]), "reducescatter")
    assert moves.scratch == [2, 2, 2, 2]


def test_results_of_a_ring_may_be_written_where_they_belong_because_they_come_of_what_was_there():
    moves = moves_in(ring_all_reduce([[0, 1, 2, 3]]), "allreduce")
    assert [run.direct for move in moves.moves for run in move.runs] == [False] * 12 + [True] * 12
    assert not moves.overtaken


def test_what_may_still_be_read_is_not_written_by_the_sender():
    ends = owner(3, lambda chunk: chunk), everyone(3)
    # Rank 1 passes chunk 0 on to 2 and gets it again from 0, who has no idea whether 1 is done.
    rounds = [[(0, 1, False, 0, [0])], [(1, 2, False, 0, [0])], [(0, 1, False, 0, [0])]]
    moves = moves_in(program_of("again", 3, 3, rounds, *ends), "allgather")
    assert [move.runs[0].direct for move in moves.moves] == [True, True, False]
    assert moves.overtaken == {1}
    assert moves.needs[2, True] == {(0, True), (1, False)}


def test_moves_that_are_overtaken_are_known():
    moves = moves_in(overtaken_all_reduce(), "allreduce")
    assert moves.overtaken == {0, 1}
    assert (0, False) in moves.needs[1, True]


def test_neighbouring_chunks_travel_as_one_run():
    moves = moves_in(halving_doubling_all_reduce(8), "allreduce")
    assert {move.chunks for move in moves.moves if move.round in (0, 5)} == {4}
    assert all(len(move.runs) == 1 for move in moves.moves if move.round == 2)


def test_a_send_of_something_that_is_not_there_is_refused():
    program = program_of("early", 2, 2, [[(0, 1, False, 0, [1])]], owner(2, lambda c: c), everyone(2))
    with pytest.raises(ProgramError, match="rank 0 sends chunk 1 before it has it"):
        moves_in(program, "allgather")


def test_a_thread_block_does_not_wait_twice_for_what_it_knows():
    moves = moves_in(ring_all_reduce([[0, 1, 2]]), "allreduce")
    dealt = deal(moves, lambda event: event[1])
    sends, arrivals = dealt.blocks[0]
    assert [dealt.awaited.get(event) for event in sends] == [None, ((1, 0),), ((1, 1),), ((1, 2),)]
    assert not any(event in dealt.awaited for event in arrivals)
