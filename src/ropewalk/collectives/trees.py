"""One tree up and down: an all-reduce in 2⌈log2 N⌉ rounds of the whole buffer, which small buffers can afford."""

from __future__ import annotations

from ropewalk.collectives.program import Program, everyone
from ropewalk.collectives.rooted import binomial_broadcast, binomial_reduce


def binomial_all_reduce(ranks: int) -> Program:
    """Reduce to rank 0 along a binomial tree, then broadcast along it.

    >>> len(binomial_all_reduce(9).rounds)
    8
    """
    rounds = (*binomial_reduce(ranks).rounds, *binomial_broadcast(ranks).rounds)
    return Program("binomial all-reduce", ranks, 1, rounds, everyone(ranks), everyone(ranks))
