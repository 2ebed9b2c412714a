"""Programs that plan files have to carry: the named ones, forests on small fabrics, and gossip without any order."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives import (
    Pattern,
    Program,
    Round,
    binomial_broadcast,
    binomial_reduce,
    chain_broadcast,
    chain_reduce,
    direct_all_to_all,
    double_tree_all_reduce,
    everyone,
    halving_doubling_all_reduce,
    hierarchical_all_to_all,
    hips_torus,
    mesh_all_gather,
    mesh_all_reduce,
    mesh_reduce_scatter,
    owner,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest, reduce_scatter_forest
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.optimum import network_of
from ropewalk.fabric import Torus

Named = tuple[Program, str]

SEND = tuple[int, int, bool, int, list[int]]
"""(source, destination, adds, lane, chunks)."""


def program_of(name: str, ranks: int, chunks: int, rounds: list[list[SEND]], pre, post) -> Program:
    """A program from lists of sends."""
    return Program(name, ranks, chunks, tuple(_round(sends) for sends in rounds if sends), pre, post)


def _round(sends: list[SEND]) -> Round:
    src, dst, adds, lane, chunks = (list(column) for column in zip(*sends, strict=True))
    sizes = [len(own) for own in chunks]
    pattern = Pattern(
        np.array(src, np.int32),
        np.array(dst, np.int32),
        np.array(sizes, np.int64),
        np.array(adds, np.bool_),
        np.array(lane, np.int32),
    )
    start, ids = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([np.array(own) for own in chunks])
    return Round(pattern, lambda: (start, ids))


@st.composite
def named_programs(draw: st.DrawFn) -> Named:
    """Rings, meshes, hierarchies, trees, exchanges."""
    ranks = draw(st.integers(2, 7))
    segments = draw(st.integers(1, 5))
    root = draw(st.integers(0, ranks - 1))
    both_ways = draw(st.booleans())
    order = draw(st.permutations(range(ranks)))
    choices = {
        "ring": lambda: (ring_all_reduce([order], both_ways), "allreduce"),
        "ring gather": lambda: (ring_all_gather([order], both_ways), "allgather"),
        "ring scatter": lambda: (ring_reduce_scatter([order], both_ways), "reducescatter"),
        "mesh": lambda: (mesh_all_reduce(ranks), "allreduce"),
        "mesh gather": lambda: (mesh_all_gather(ranks), "allgather"),
        "mesh scatter": lambda: (mesh_reduce_scatter(ranks), "reducescatter"),
        "halving": lambda: (halving_doubling_all_reduce(ranks), "allreduce"),
        "double tree": lambda: (double_tree_all_reduce(ranks, segments), "allreduce"),
        "hips": lambda: (hips_torus(Torus((2, 3))).all_reduce("HiPS"), "allreduce"),
        "binomial": lambda: (binomial_broadcast(ranks, root), "broadcast"),
        "binomial reduce": lambda: (binomial_reduce(ranks, root), "reduce"),
        "chain": lambda: (chain_broadcast((ranks,), segments, root), "broadcast"),
        "chain reduce": lambda: (chain_reduce((ranks,), segments, root), "reduce"),
        "shift": lambda: (shift_all_to_all(ranks), "alltoall"),
        "direct": lambda: (direct_all_to_all(ranks), "alltoall"),
        "hierarchical": lambda: (hierarchical_all_to_all(2, 3), "alltoall"),
    }
    return choices[draw(st.sampled_from(sorted(choices)))]()


FORESTS = {
    "allgather": all_gather_forest,
    "reducescatter": reduce_scatter_forest,
    "allreduce": all_reduce_forest,
}


@st.composite
def forest_programs(draw: st.DrawFn) -> Named:
    """Optimal forests on small fabrics of any shape."""
    hosts, switches, links = draw(small_fabrics(alike=True, most_hosts=5, most_switches=2))
    collective = draw(st.sampled_from(sorted(FORESTS)))
    forest = FORESTS[collective](network_of(fabric_of(hosts, switches, links)))
    return forest_schedule(forest, collective, draw(st.integers(1, 3))).program, collective


@st.composite
def gossip_gathers(draw: st.DrawFn) -> Named:
    """All-gathers in which ranks send what they happen to have, even to ranks that have it already."""
    ranks, each = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    chunks = ranks * each
    holds = [{chunk for chunk in range(chunks) if chunk % ranks == rank} for rank in range(ranks)]
    rounds = [_gossip_round(draw, ranks, holds) for _ in range(draw(st.integers(0, 6)))]
    for rank in range(ranks):
        missing = sorted(set(range(chunks)) - holds[rank])
        rounds.extend([(chunk % ranks, rank, False, 0, [chunk])] for chunk in missing)
    condition = owner(ranks, lambda chunk: chunk % ranks)
    return program_of("gossip", ranks, chunks, rounds, condition, everyone(ranks)), "allgather"


def _gossip_round(draw: st.DrawFn, ranks: int, holds: list[set[int]]) -> list[SEND]:
    sends: list[SEND] = []
    sent: set[tuple[int, int]] = set()
    got: set[tuple[int, int]] = set()
    for _ in range(draw(st.integers(1, 3))):
        src = draw(st.integers(0, ranks - 1))
        dst = draw(st.integers(0, ranks - 1).filter(lambda rank, src=src: rank != src))
        free = [c for c in sorted(holds[src]) if (src, c) not in got and (dst, c) not in got | sent]
        if free:
            moved = sorted(draw(st.sets(st.sampled_from(free), min_size=1)))
            sends.append((src, dst, False, 0, moved))
            sent.update((src, chunk) for chunk in moved)
            got.update((dst, chunk) for chunk in moved)
    for _, dst, _, _, moved in sends:
        holds[dst].update(moved)
    return sends


@st.composite
def gossip_reduces(draw: st.DrawFn) -> Named:
    """All-reduces up and down another random tree for each chunk, at random times."""
    ranks, chunks = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    timed: dict[int, list[SEND]] = {}
    for chunk in range(chunks):
        order = draw(st.permutations(range(ranks)))
        parent = [draw(st.integers(0, place - 1)) for place in range(1, ranks)]
        at = draw(st.integers(0, 3))
        # Leaves of the tree come last in the order, so going backwards every child is heard before its parent speaks.
        moves = [(order[p], order[parent[p - 1]], True) for p in range(ranks - 1, 0, -1)]
        moves += [(order[parent[p - 1]], order[p], False) for p in range(1, ranks)]
        for src, dst, adds in moves:
            timed.setdefault(at, []).append((src, dst, adds, 0, [chunk]))
            at += draw(st.integers(1, 2))
    rounds = [timed[at] for at in sorted(timed)]
    both = everyone(ranks)
    return program_of("random trees", ranks, chunks, rounds, both, both), "allreduce"


def programs() -> st.SearchStrategy[Named]:
    """All of them."""
    return st.one_of(named_programs(), forest_programs(), gossip_gathers(), gossip_reduces())


def overtaken_all_reduce() -> Program:
    """Rank 0 adds something to what it has just sent, long before anybody needs to have heard it."""
    both = everyone(3)
    rounds = [[(0, 1, True, 0, [0])], [(2, 0, True, 0, [0])], [(2, 1, True, 0, [0])]]
    rounds += [[(1, 0, False, 0, [0]), (1, 2, False, 0, [0])]]
    return program_of("overtaken", 3, 1, rounds, both, both)
