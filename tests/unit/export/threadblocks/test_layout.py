"""Where chunks lie in the buffers that libraries define, and programs that have no place there."""

import numpy as np
import pytest
from plan_worlds import program_of

from ropewalk.collectives import (
    chain_broadcast,
    dedicated_servers,
    everyone,
    owner,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.errors import ProgramError
from ropewalk.export.threadblocks.layout import layout_of


def test_the_output_of_an_all_gather_holds_the_shards_in_the_order_of_ranks():
    layout = layout_of(ring_all_gather([[0, 1, 2], [0, 2, 1]]), "allgather")
    assert (layout.inputs, layout.outputs) == (2, 6)
    assert layout.at_output[1].tolist() == [0, 2, 4, 1, 3, 5]
    assert layout.at_input[2].tolist() == [-1, -1, 0, -1, -1, 1]
    assert layout.own == (((0, 0, 2),), ((0, 2, 2),), ((0, 4, 2),))


def test_the_input_of_a_reduce_scatter_is_laid_out_like_the_output_of_an_all_gather():
    gather = layout_of(ring_all_gather([[0, 1, 2]], both_ways=True), "allgather")
    scatter = layout_of(ring_reduce_scatter([[0, 1, 2]], both_ways=True), "reducescatter")
    assert np.array_equal(scatter.at_input, gather.at_output)
    assert np.array_equal(scatter.at_output, gather.at_input)


def test_an_all_to_all_is_a_transpose():
    layout = layout_of(shift_all_to_all(3), "alltoall")
    chunk = 1 * 3 + 2
    assert layout.at_input[1, chunk] == 2
    assert layout.at_output[2, chunk] == 1
    assert layout.own[2] == ((2, 2, 1),)


def test_an_all_to_all_that_leaves_out_what_ranks_keep_has_the_same_layout():
    pairs = [(s, d) for s in range(3) for d in range(3) if s != d]
    source, target = np.array(pairs).T
    ends = owner(3, lambda chunk: source[chunk]), owner(3, lambda chunk: target[chunk])
    program = program_of("bare", 3, 6, [[(s, d, False, 0, [c])] for c, (s, d) in enumerate(pairs)], *ends)
    layout = layout_of(program, "alltoall")
    assert (layout.inputs, layout.outputs, layout.own[1]) == (3, 3, ((1, 1, 1),))


def test_shards_of_different_sizes_are_refused():
    condition = owner(2, lambda chunk: np.where(chunk == 0, 0, 1))
    program = program_of("uneven", 2, 3, [[(0, 1, False, 0, [0])]], condition, everyone(2))
    with pytest.raises(ProgramError, match=r"shards of 1 to 2 chunks.*ask for equal shards"):
        layout_of(program, "allgather")


@pytest.mark.parametrize(
    ("program", "collective", "message"),
    [
        (ring_all_reduce([[0, 1, 2]]), "allgather", "3 ranks begin with chunk 0 instead of one"),
        (ring_all_gather([[0, 1, 2]]), "allreduce", "rank 0 does not begin with chunk 1"),
        (ring_all_gather([[0, 1, 2]]), "broadcast", "3 roots"),
        (chain_broadcast((3,), 2), "reduce", "rank 1 does not begin"),
        (dedicated_servers(3, 2), "allreduce", "no relays or servers"),
        (chain_broadcast((3,), 2), "bcast", "give one of allgather"),
    ],
)
def test_programs_that_do_something_else_are_refused(program, collective, message):
    with pytest.raises(ProgramError, match=message):
        layout_of(program, collective)
