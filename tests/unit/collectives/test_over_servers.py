"""Rings over servers: every rank once, every NIC of a server busy alike, neighbours on the same rail."""

import numpy as np
import pytest

from ropewalk.collectives.over_servers import (
    chain_broadcast,
    chain_reduce,
    ring_orders,
    server_rings,
)
from ropewalk.errors import ProgramError

SEATINGS = [(2,), (5,), (1, 1), (1, 1, 1, 1), (2, 2), (2, 2, 2), (3, 3, 3), (4, 4), (8, 8, 8), (4, 4, 4, 4), (3, 1, 2)]


def crossings(servers: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """The (from, to) pairs of each ring that change servers."""
    server = np.repeat(np.arange(len(servers)), servers)
    return [
        [(int(a), int(b)) for a, b in zip(order, np.roll(order, -1), strict=True) if server[a] != server[b]]
        for order in ring_orders(servers)
    ]


@pytest.mark.parametrize("servers", SEATINGS, ids=str)
def test_every_ring_visits_every_rank_once_and_every_server_once(servers):
    for order, crossed in zip(ring_orders(servers), crossings(servers), strict=True):
        assert sorted(order.tolist()) == list(range(sum(servers)))
        assert len(crossed) == (len(servers) if len(servers) > 1 else 0)


@pytest.mark.parametrize("servers", [(2, 2), (2, 2, 2), (3, 3, 3), (8, 8), (8, 8, 8), (4, 4, 4, 4)], ids=str)
def test_every_gpu_sends_one_ring_out_of_its_server_and_takes_one_in(servers):
    crossed = [pair for ring in crossings(servers) for pair in ring]
    assert sorted(src for src, _ in crossed) == list(range(sum(servers)))
    assert sorted(dst for _, dst in crossed) == list(range(sum(servers)))


@pytest.mark.parametrize("servers", [(2, 2), (3, 3, 3), (8, 8), (8, 8, 8), (4, 4, 4, 4)], ids=str)
def test_rings_cross_between_gpus_of_the_same_rail(servers):
    rail = np.tile(np.arange(servers[0]), len(servers))
    assert all(rail[src] == rail[dst] for ring in crossings(servers) for src, dst in ring)


def test_two_ranks_a_server_and_an_odd_number_of_servers_change_rails_once_a_ring():
    rail = np.tile([0, 1], 3)
    assert [sum(int(rail[a] != rail[b]) for a, b in ring) for ring in crossings((2, 2, 2))] == [1, 1]


def test_inside_one_server_and_with_one_rank_a_server_there_is_one_ring_in_the_order_of_the_ranks():
    for servers in [(4,), (1, 1, 1, 1)]:
        assert [order.tolist() for order in ring_orders(servers)] == [[0, 1, 2, 3]]


@pytest.mark.parametrize("servers", SEATINGS, ids=str)
def test_the_programs_prove_themselves(servers):
    halves = server_rings(servers)
    for program in (
        halves.all_reduce("all"), halves.reduce_scatter("scatter"), halves.all_gather("gather"),
        chain_broadcast(servers, segments=3), chain_reduce(servers, segments=3),
    ):  # fmt: skip
        program.check()


def test_servers_of_unequal_size_have_as_many_rings_as_the_smallest():
    assert len(ring_orders((3, 1, 2))) == 1
    assert len(ring_orders((3, 2))) == 2


def test_an_empty_server_is_refused():
    with pytest.raises(ProgramError, match="only servers that hold a rank"):
        ring_orders((2, 0))
