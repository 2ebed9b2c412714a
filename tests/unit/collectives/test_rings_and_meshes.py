"""Rings, meshes and parameter servers: proved for every size, with the rounds and bytes that theory says."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ropewalk.collectives import (
    dedicated_servers,
    hamiltonian_cycles,
    mesh_all_gather,
    mesh_all_reduce,
    mesh_reduce_scatter,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shared_servers,
)
from ropewalk.errors import ProgramError

SIZES = [*range(2, 21), 27, 64]


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("both_ways", [False, True])
def test_ring_takes_two_n_minus_one_rounds_and_two_n_minus_one_over_n_of_the_buffer(ranks, both_ways):
    order = np.random.default_rng(ranks).permutation(ranks)
    program = ring_all_reduce([order], both_ways)
    program.check()
    assert len(program.rounds) == 2 * (ranks - 1)
    assert len(program.patterns) == 2
    assert program.lanes == 1 + both_ways
    assert (program.sent_chunks() * ranks == 2 * (ranks - 1) * program.chunks).all()
    assert (program.received_chunks() == program.sent_chunks()).all()


@pytest.mark.parametrize("ranks", SIZES)
def test_ring_halves_are_a_reduce_scatter_and_an_all_gather(ranks):
    for half in (ring_reduce_scatter([range(ranks)]), ring_all_gather([range(ranks)])):
        half.check()
        assert len(half.rounds) == ranks - 1


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (4, 4), (3, 3, 3)])
def test_rings_over_all_cycles_both_ways_use_every_link_alike(shape):
    program = ring_all_reduce(hamiltonian_cycles(shape), both_ways=True)
    program.check()
    assert program.lanes == 2 * len(shape)
    for pattern in program.patterns:
        arrows = list(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True))
        assert len(set(arrows)) == len(arrows) == 2 * len(shape) * program.ranks


def test_one_way_round_a_ring_every_arrow_points_to_the_next_rank():
    program = ring_all_reduce([[2, 0, 1]])
    for pattern in program.patterns:
        following = dict(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True))
        assert following == {2: 0, 0: 1, 1: 2}


def test_a_ring_of_16384_ranks_is_built_without_writing_down_every_send():
    tracemalloc.start()
    try:
        program = ring_all_reduce([np.arange(16384)])
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(program.rounds) == 32766
    assert program.sends == 32766 * 16384
    assert most_bytes < program.sends / 10


def test_a_ring_of_256_ranks_is_proved():
    ring_all_reduce([np.arange(256)]).check()


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ([], "give at least one order"),
        ([[0]], "give at least 2 ranks"),
        ([[0, 0, 1]], "exactly once"),
        ([[0, 1, 2], [0, 1]], "exactly once"),
    ],
)
def test_orders_that_are_no_rings_are_refused(orders, message):
    with pytest.raises(ProgramError, match=message):
        ring_all_reduce(orders)


@pytest.mark.parametrize("ranks", SIZES)
def test_mesh_takes_two_rounds_of_n_minus_one_messages_each(ranks):
    program = mesh_all_reduce(ranks)
    program.check()
    assert [step.pattern.sends for step in program.rounds] == [ranks * (ranks - 1)] * 2
    assert (program.sent_chunks() == 2 * (ranks - 1)).all()
    for half in (mesh_reduce_scatter(ranks), mesh_all_gather(ranks)):
        half.check()
        assert len(half.rounds) == 1


@pytest.mark.parametrize("ranks", SIZES)
def test_one_shared_server_sends_and_receives_for_everybody(ranks):
    program = shared_servers(ranks)
    program.check()
    assert len(program.rounds) == 2
    assert program.sent_chunks().tolist() == [ranks - 1] + [1] * (ranks - 1)


@pytest.mark.parametrize(("ranks", "servers"), [(5, 2), (6, 3), (7, 7), (16, 5)])
def test_shared_shards_are_proved_and_spread_the_load(ranks, servers):
    program = shared_servers(ranks, servers)
    program.check()
    sent = program.sent_chunks()
    # A worker pushes every shard that is not its own; a server hands its shard to everybody else.
    assert (sent[:servers] == (servers - 1) + (ranks - 1)).all()
    assert (sent[servers:] == servers).all()


def test_a_shard_on_every_rank_is_a_mesh():
    shared, mesh = shared_servers(6, 6), mesh_all_reduce(6)
    for ours, theirs in zip(shared.patterns, mesh.patterns, strict=True):
        assert set(zip(ours.src.tolist(), ours.dst.tolist(), strict=True)) == set(
            zip(theirs.src.tolist(), theirs.dst.tolist(), strict=True)
        )
    assert (shared.sent_chunks() == mesh.sent_chunks()).all()
    assert shared.chunks == mesh.chunks


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (4, 1), (5, 3), (3, 5), (20, 4)])
def test_dedicated_servers_add_up_for_workers_only(workers, servers):
    program = dedicated_servers(workers, servers)
    program.check()
    assert program.ranks == workers + servers
    assert program.sent_chunks().tolist() == [servers] * workers + [workers] * servers


@pytest.mark.parametrize(
    "build",
    [
        lambda: mesh_all_reduce(1),
        lambda: shared_servers(4, 5),
        lambda: shared_servers(4, 0),
        lambda: shared_servers(1, 1),
        lambda: dedicated_servers(4, 0),
        lambda: dedicated_servers(0, 1),
    ],
)
def test_sizes_that_do_not_exist_are_refused_with_a_remedy(build):
    with pytest.raises(ProgramError, match="give"):
        build()
