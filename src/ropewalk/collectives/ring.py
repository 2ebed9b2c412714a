"""Rings: chunks travel around Hamiltonian cycles, 2(N-1) rounds in which every link of a ring is always busy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collectives.peers import lanes_of, reverse_ring_inside, ring_inside
from ropewalk.collectives.program import Program
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two, in_parallel
from ropewalk.errors import ProgramError


def ring_all_reduce(orders: Sequence[ArrayLike], both_ways: bool = False) -> Program:
    """All-reduce over one or several rings, given as the order in which each of them visits the ranks.

    Every ring is a lane with an equal part of the buffer; `both_ways` makes two opposite rings of each order.

    >>> program = ring_all_reduce([[0, 1, 3, 2]])
    >>> len(program.rounds), program.sent_chunks().tolist()
    (6, [6, 6, 6, 6])
    """
    return rings(orders, both_ways).all_reduce(_name("all-reduce", orders, both_ways))


def ring_reduce_scatter(orders: Sequence[ArrayLike], both_ways: bool = False) -> Program:
    """Reduce-scatter over rings: N-1 rounds, rank r ends with chunk r of every ring."""
    return rings(orders, both_ways).reduce_scatter(_name("reduce-scatter", orders, both_ways))


def ring_all_gather(orders: Sequence[ArrayLike], both_ways: bool = False) -> Program:
    """All-gather over rings: N-1 rounds, rank r begins with chunk r of every ring."""
    return rings(orders, both_ways).all_gather(_name("all-gather", orders, both_ways))


def rings(orders: Sequence[ArrayLike], both_ways: bool = False) -> ScatterGather:
    """The two halves of a ring all-reduce."""
    visits = [np.asarray(order, np.int64) for order in orders]
    _check_orders(visits)
    ranks = len(visits[0])
    if not both_ways:
        return ScatterGather(ranks, ranks * len(visits), *ring_inside(lanes_of(visits)))
    directions = ring_inside, reverse_ring_inside
    return in_parallel(
        [ScatterGather(ranks, ranks, *inside(lanes_of([order]))) for order in visits for inside in directions]
    )


def _check_orders(orders: list[NDArray[np.int64]]) -> None:
    if not orders:
        raise ProgramError("there is no ring: give at least one order of the ranks")
    ranks = len(orders[0])
    at_least_two(ranks, "a ring")
    for order in orders:
        if not np.array_equal(np.sort(order), np.arange(ranks)):
            raise ProgramError(f"a ring visits ranks {order.tolist()[:8]}…: list each of 0…{ranks - 1} exactly once")


def _name(collective: str, orders: Sequence[ArrayLike], both_ways: bool) -> str:
    count = len(orders)
    return f"ring {collective} over {count} cycle{'s' * (count > 1)}, {'both ways' if both_ways else 'one way'}"
