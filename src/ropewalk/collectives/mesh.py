"""The mesh: everybody sends everybody else its chunk directly, one round to scatter and one to gather."""

from __future__ import annotations

from ropewalk.collectives.every_pair import EveryPair
from ropewalk.collectives.program import Program, Round
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two


def mesh_all_reduce(ranks: int) -> Program:
    """All-reduce in 2 rounds, in each of which every rank sends N-1 messages of a chunk.

    >>> mesh_all_reduce(4).sends
    24
    """
    return mesh(ranks).all_reduce("mesh all-reduce")


def mesh_reduce_scatter(ranks: int) -> Program:
    """Reduce-scatter in 1 round: everybody sends chunk r to rank r."""
    return mesh(ranks).reduce_scatter("mesh reduce-scatter")


def mesh_all_gather(ranks: int) -> Program:
    """All-gather in 1 round: everybody sends its chunk to everybody."""
    return mesh(ranks).all_gather("mesh all-gather")


def mesh(ranks: int) -> ScatterGather:
    """The two halves of a mesh all-reduce."""
    at_least_two(ranks, "a mesh")
    adding, copying = EveryPair(ranks, adds=True), EveryPair(ranks, adds=False)
    scatter = Round(adding, adding.chunk_of_receiver)
    gather = Round(copying, copying.chunk_of_sender)
    return ScatterGather(ranks, ranks, [scatter], [gather])
