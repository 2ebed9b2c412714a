"""Laws of collectives: exactly-once sums for all sizes, equal volumes, and no send that could be left out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ropewalk.collectives import (
    Pattern,
    Process,
    Program,
    Round,
    ScatterGather,
    binomial_broadcast,
    binomial_reduce,
    chain_broadcast,
    chain_reduce,
    dedicated_servers,
    direct_all_to_all,
    double_tree_all_reduce,
    doubling_all_gather,
    everyone,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
    hamiltonian_cycles,
    hierarchical_all_to_all,
    hips,
    mesh_all_gather,
    mesh_all_reduce,
    mesh_inside,
    mesh_reduce_scatter,
    reverse_ring_inside,
    ring_all_gather,
    ring_all_reduce,
    ring_inside,
    ring_reduce_scatter,
    shared_servers,
    shift_all_to_all,
    xor_all_to_all,
)
from ropewalk.errors import ProofError

INSIDES = [mesh_inside, ring_inside, reverse_ring_inside]


@st.composite
def halves(draw: st.DrawFn) -> ScatterGather:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sides: math.prod(sides) > 1))
    grid = np.array(draw(st.permutations(range(math.prod(shape))))).reshape(shape)
    order = st.permutations(range(len(shape))).map(tuple)
    return hips(grid, draw(st.lists(st.builds(Process, order, st.sampled_from(INSIDES)), min_size=1, max_size=3)))


@st.composite
def hierarchies(draw: st.DrawFn) -> Program:
    drawn = draw(halves())
    return draw(st.sampled_from([drawn.all_reduce, drawn.reduce_scatter, drawn.all_gather]))("hierarchy")


@st.composite
def multi_rings(draw: st.DrawFn) -> Program:
    ranks = draw(st.integers(2, 10))
    orders = draw(st.lists(st.permutations(range(ranks)), min_size=1, max_size=3))
    build = draw(st.sampled_from([ring_all_reduce, ring_reduce_scatter, ring_all_gather]))
    return build(orders, draw(st.booleans()))


def programs() -> st.SearchStrategy[Program]:
    ranks = st.integers(2, 12)
    powers = st.sampled_from([2, 4, 8, 16])
    segments = st.integers(1, 5)
    rooted = st.tuples(ranks, st.integers(0, 11)).map(lambda pair: (pair[0], pair[1] % pair[0]))
    return st.one_of(
        hierarchies(),
        multi_rings(),
        st.builds(mesh_all_reduce, ranks),
        st.builds(mesh_reduce_scatter, ranks),
        st.builds(mesh_all_gather, ranks),
        st.builds(halving_doubling_all_reduce, ranks),
        st.builds(halving_reduce_scatter, powers),
        st.builds(doubling_all_gather, powers),
        st.builds(double_tree_all_reduce, ranks, segments),
        st.integers(2, 12).flatmap(lambda n: st.builds(shared_servers, st.just(n), st.integers(1, n))),
        # With one worker there is nothing to add up, and its pull could indeed be left out.
        st.builds(dedicated_servers, st.integers(2, 9), st.integers(1, 4)),
        rooted.map(lambda pair: binomial_broadcast(*pair)),
        rooted.map(lambda pair: binomial_reduce(*pair)),
        st.tuples(rooted, segments).map(lambda given: chain_broadcast((given[0][0],), given[1], given[0][1])),
        st.tuples(rooted, segments).map(lambda given: chain_reduce((given[0][0],), given[1], given[0][1])),
        st.builds(shift_all_to_all, ranks),
        st.builds(direct_all_to_all, ranks),
        st.builds(xor_all_to_all, powers),
        st.builds(hierarchical_all_to_all, st.integers(2, 4), st.integers(2, 4)),
    )


def without_send(program: Program, number: int, send: int) -> Program:
    step = program.rounds[number]
    start, ids = step.chunks()
    kept = np.arange(step.pattern.sends) != send
    pattern = Pattern(*(getattr(step.pattern, column.name)[kept] for column in fields(Pattern)))
    left = np.concatenate([[0], np.cumsum(pattern.chunks)])
    chunks = ids[np.repeat(kept, np.diff(start))]
    rounds = list(program.rounds)
    rounds[number] = Round(pattern, lambda: (left, chunks))
    return replace(program, rounds=tuple(rounds))


@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_collective_of_every_size_keeps_its_contract(program):
    assert program.sends > 0
    assert program.post(np.arange(program.chunks)).any(axis=0).all()
    program.check()


@settings(max_examples=150, deadline=None)
@given(programs(), st.data())
def test_no_send_can_be_left_out(program, data):
    number = data.draw(st.integers(0, len(program.rounds) - 1))
    send = data.draw(st.integers(0, program.rounds[number].pattern.sends - 1))
    with pytest.raises(ProofError):
        without_send(program, number, send).check()


@settings(max_examples=60, deadline=None)
@given(programs(), st.data())
def test_no_reduce_can_be_done_twice(program, data):
    adding = [number for number, step in enumerate(program.rounds) if step.pattern.reduces.all()]
    if not adding:
        program = mesh_all_reduce(program.ranks)
        adding = [0]
    number = data.draw(st.sampled_from(adding))
    rounds = (*program.rounds[: number + 1], *program.rounds[number:])
    with pytest.raises(ProofError):
        replace(program, rounds=rounds).check()


@settings(max_examples=100, deadline=None)
@given(programs())
def test_patterns_promise_what_the_chunks_say_and_rounds_share_them(program):
    moved_out, moved_in = np.zeros(program.ranks, np.int64), np.zeros(program.ranks, np.int64)
    for step in program.rounds:
        start, ids = step.chunks()
        assert len(ids) == start[-1] == step.pattern.chunks.sum()
        np.add.at(moved_out, step.pattern.src, np.diff(start))
        np.add.at(moved_in, step.pattern.dst, np.diff(start))
    assert np.array_equal(moved_out, program.sent_chunks())
    assert np.array_equal(moved_in, program.received_chunks())
    assert len(program.patterns) <= len(program.rounds)


@settings(max_examples=60, deadline=None)
@given(halves())
def test_a_hierarchy_sends_the_same_volume_whatever_its_levels(drawn):
    volume = (drawn.ranks - 1) * drawn.chunks
    assert (drawn.reduce_scatter("scatter").sent_chunks() * drawn.ranks == volume).all()
    assert (drawn.all_gather("gather").sent_chunks() * drawn.ranks == volume).all()
    assert (drawn.all_reduce("both").received_chunks() * drawn.ranks == 2 * volume).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda sides: 1 < math.prod(sides) <= 600))
def test_cycles_of_any_torus_are_hamiltonian_and_edge_disjoint(shape):
    hosts = math.prod(shape)
    cycles = hamiltonian_cycles(shape)
    assert len(cycles) == max(1, sum(side > 2 for side in shape) + shape.count(2) // 2)
    edges: Counter[frozenset[int]] = Counter()
    for order in cycles:
        assert np.array_equal(np.sort(order), np.arange(hosts))
        place = np.stack(np.unravel_index(order, shape))
        step = (np.roll(place, -1, axis=1) - place) % np.array(shape)[:, None]
        assert (np.minimum(step, np.array(shape)[:, None] - step).sum(axis=0) == 1).all()
        if hosts > 2:
            edges.update(map(frozenset, zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)))
    assert not edges or max(edges.values()) == 1


@st.composite
def random_programs(draw: st.DrawFn) -> Program:
    """Well-formed rounds of random sends between up to 4 ranks: mostly wrong, sometimes right."""
    ranks = draw(st.integers(2, 4))
    send = st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1), st.booleans()).filter(lambda s: s[0] != s[1])
    rounds = []
    for sends in draw(st.lists(st.lists(send, min_size=1, max_size=3), max_size=6)):
        senders = {src for src, _, _ in sends}
        arrivals = Counter(dst for _, dst, _ in sends)
        overwritten = {dst for _, dst, adds in sends if not adds}
        clashes = senders | {dst for dst in overwritten if arrivals[dst] > 1}
        kept = [send for send in sends if send[1] not in clashes]
        if kept:
            src, dst, adds = zip(*kept, strict=True)
            count = len(kept)
            pattern = Pattern(
                np.array(src, np.int32),
                np.array(dst, np.int32),
                np.ones(count, np.int64),
                np.array(adds, bool),
                np.zeros(count, np.int32),
            )
            rounds.append(Round(pattern, lambda count=count: (np.arange(count + 1), np.zeros(count, np.int64))))
    members = draw(st.lists(st.integers(0, ranks - 1), min_size=1, unique=True))
    post = np.isin(np.arange(ranks), members)
    return Program(
        "random", ranks, 1, tuple(rounds), everyone(ranks), lambda chunk: np.repeat(post[:, None], 1, axis=1)
    )


def counted_by_hand(program: Program) -> list[Counter[int]]:
    """The reference: one counter of contributions for each rank, replayed send by send."""
    held = [Counter({rank: 1}) for rank in range(program.ranks)]
    for step in program.rounds:
        before = [Counter(counts) for counts in held]
        pattern = step.pattern
        for src, dst, adds in zip(pattern.src.tolist(), pattern.dst.tolist(), pattern.reduces.tolist(), strict=True):
            held[dst] = held[dst] + before[src] if adds else Counter(before[src])
    return held


@settings(max_examples=300, deadline=None)
@given(random_programs())
def test_the_proof_agrees_with_counting_by_hand(program):
    post = program.post(np.arange(1))[:, 0]
    everybody_once = Counter(range(program.ranks))
    right = all(counts == everybody_once for rank, counts in enumerate(counted_by_hand(program)) if post[rank])
    event("right" if right else "wrong")
    if right:
        program.check()
    else:
        with pytest.raises(ProofError, match="ends with a chunk 0"):
            program.check()
