"""Rings that a program consists of, and programs that are none."""

import numpy as np
import pytest

from ropewalk.collectives import (
    binomial_broadcast,
    chain_broadcast,
    double_tree_all_reduce,
    mesh_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from ropewalk.collectives.lanes import side_by_side
from ropewalk.collectives.program import Program, everyone
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProgramError
from ropewalk.export.nccl import channel_speed, ring_orders
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.task import lockstep


def test_every_ring_is_found_from_rank_0_on():
    for make in (ring_all_reduce, ring_all_gather, ring_reduce_scatter):
        assert ring_orders(make([[2, 0, 1], [1, 0, 2]])) == [(0, 1, 2), (0, 2, 1)]


def test_a_chain_is_the_ring_that_nccl_broadcasts_along():
    assert ring_orders(chain_broadcast((4,), 2, root=2)) == [(0, 1, 2, 3)]


def test_a_ring_with_twice_the_chunks_gets_two_channels():
    one, other = ring_all_reduce([[0, 1, 2]]), ring_all_reduce([[0, 2, 1]])
    rounds = side_by_side([list(one.rounds), list(other.rounds), list(other.rounds)], 3)
    program = Program("lopsided", 3, 9, tuple(rounds), everyone(3), everyone(3))
    program.check()
    assert ring_orders(program) == [(0, 1, 2), (0, 2, 1), (0, 2, 1)]


@pytest.mark.parametrize("program", [mesh_all_reduce(4), double_tree_all_reduce(5, 2), binomial_broadcast(4)])
def test_what_is_no_ring_is_refused_with_another_way(program):
    with pytest.raises(ProgramError, match=r"is not a ring: chunk \d+ .* MSCCL\+\+"):
        ring_orders(program)


def test_a_chunk_that_stays_among_some_ranks_is_refused():
    inner = ring_all_reduce([[0, 1]])
    wider = Program(
        "two of three", 3, 2, inner.rounds, *[lambda c: np.array([[1], [1], [0]], bool).repeat(len(c), 1)] * 2
    )
    wider.check()
    with pytest.raises(ProgramError, match="passes 2 of 3 ranks"):
        ring_orders(wider)


def test_more_rings_than_channels_are_refused():
    with pytest.raises(ProgramError, match="needs 65 channels, NCCL has 64"):
        ring_orders(ring_all_reduce([[0, *np.roll(range(1, 67), turn).tolist()] for turn in range(65)]))


def test_channels_share_the_links_that_they_cross():
    program = ring_all_reduce([[0, 1, 2], [0, 2, 1]])
    fabric = IdealSwitch(3, bandwidth=40e9).build()
    routes = shortest(fabric, *lockstep(program, 1.0).all_pairs())
    schedule = Schedule("rings", program, np.arange(3, dtype=np.int32), routes)
    assert channel_speed(schedule, ring_orders(program)) == 20.0
    assert channel_speed(schedule, ring_orders(program)[:1]) == 40.0
