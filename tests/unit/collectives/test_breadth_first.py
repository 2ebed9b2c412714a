"""Breadth-first broadcasts: rounds, pieces and ways in worlds small enough to know the answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ropewalk.collectives.breadth_first import bfb_schedule, neighbours_of
from ropewalk.collectives.latency import schedule_cost
from ropewalk.collectives.optimum import network_of
from ropewalk.errors import ProgramError
from ropewalk.fabric import Circulant, Dgx, FabricDraft, FatTree, IdealSwitch, LeafSpine, Mesh, Ring, Torus

COLLECTIVES = ["allgather", "reducescatter", "allreduce", "broadcast", "reduce"]


def test_on_a_ring_of_four_the_opposite_shard_comes_in_halves_from_both_sides():
    program = bfb_schedule(network_of(Ring(4).build()), "allgather").program
    assert program.chunks == 8
    last = program.rounds[-1].pattern
    assert sorted(zip(last.src.tolist(), last.dst.tolist(), last.chunks.tolist(), strict=True)) == [
        (rank, other, 1) for rank in range(4) for other in sorted(((rank - 1) % 4, (rank + 1) % 4))
    ]


def test_under_one_switch_everything_takes_one_round():
    schedule = bfb_schedule(network_of(IdealSwitch(5, bandwidth=1e9).build()), "allgather")
    assert len(schedule.program.rounds) == 1
    assert schedule.program.sends == 20
    assert schedule.promise == Fraction(5, 4) * 10**9


def test_gpus_are_neighbours_within_their_server_and_along_their_rail():
    near = neighbours_of(network_of(Dgx(2, gpus=4).build()))
    assert sorted(sender for sender, receiver in near.ways if receiver == 0) == [1, 2, 3, 4]
    assert near.diameter == 2


def test_a_member_on_the_way_is_a_stop_and_a_stranger_is_not():
    row = Mesh((1, 3)).build()
    assert neighbours_of(network_of(row)).diameter == 2
    ends = neighbours_of(network_of(row, group=[0, 2]))
    assert ends.diameter == 1
    ((links, share),) = ends.ways[0, 1]
    assert (len(links), share) == (2, 1)


def test_bytes_spread_over_parallel_links_in_proportion_to_their_speed():
    draft = FabricDraft("pair")
    draft.add_hosts(["a", "b"])
    draft.add_links([0, 0], [1, 1], [1e9, 3e9])
    schedule = bfb_schedule(network_of(draft.freeze()), "broadcast")
    assert sorted(schedule.routes.share.tolist()) == [0.25, 0.75]
    assert schedule.promise == 4 * 10**9


def test_a_fast_neighbour_hands_on_more_of_a_shard_than_a_slow_one():
    """Host 3 hears of host 0 from hosts 1 and 2, whose links to it are 3 : 1."""
    draft = FabricDraft("diamond")
    draft.add_hosts(["h0", "h1", "h2", "h3"])
    draft.add_links([0, 0, 1, 2], [1, 2, 3, 3], [9e9, 9e9, 3e9, 1e9])
    program = bfb_schedule(network_of(draft.freeze()), "broadcast").program
    last = program.rounds[-1].pattern
    carried = dict(zip(last.src.tolist(), last.chunks.tolist(), strict=True))
    assert carried[1] == 3 * carried[2]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize(
    ("fabric", "options"),
    [
        (Torus((3, 4)), {}),
        (Circulant(7, (1, 2)), {}),
        (Dgx(2, gpus=4), {}),
        (LeafSpine(2, 2, 3), {"group": [3, 0, 2]}),
        (Ring(5), {"shards": [1, 2, 0, 1, 3]}),
        (Mesh((2, 3)), {"host_limits": [1e9, 2e9, 1e9, 1e9, 3e9, 1e9]}),
    ],
    ids=lambda value: getattr(value, "expression", ""),
)
def test_every_collective_is_proved(fabric, options, collective, segments):
    network = network_of(fabric.build(), **options)
    schedule = bfb_schedule(network, collective, segments)
    schedule.program.check()
    schedule.routes.check()
    assert schedule.hosts.tolist() == network.members.tolist()
    hops = neighbours_of(network).hops
    steps = {"broadcast": hops[0].max(), "reduce": hops[:, 0].max(), "allreduce": 2 * hops.max()}
    if "shards" not in options:
        assert len(schedule.program.rounds) == steps.get(collective, hops.max()) + segments - 1


def test_shards_in_proportion_become_chunks_in_proportion():
    network = network_of(Ring(3).build(), shards=[1, 0, 3])
    program = bfb_schedule(network, "allgather").program
    owned = program.pre(np.arange(program.chunks)).sum(axis=1)
    assert owned.tolist() == [program.chunks // 4, 0, program.chunks // 4 * 3]


def test_segments_fill_links_that_single_rounds_leave_idle():
    network = network_of(Ring(5).build(), shards=[1, 2, 0, 1, 3])
    assert bfb_schedule(network, "allgather", 4).promise > bfb_schedule(network, "allgather").promise


def test_the_limit_of_a_host_is_part_of_the_promise():
    fabric = Ring(4, bandwidth=1e9).build()
    slow = network_of(fabric, host_limits=[1e9] * 4)
    assert bfb_schedule(network_of(fabric), "allgather").promise == Fraction(8, 3) * 10**9
    assert bfb_schedule(slow, "allgather").promise == Fraction(4, 3) * 10**9


def test_awkward_bandwidths_are_rounded_to_few_pieces_and_cost_little():
    draft = FabricDraft("awkward")
    draft.add_hosts([f"h{host}" for host in range(6)])
    speeds = [1.0, 1.01, 1.003, 0.997, 1.0207, 0.9901]
    draft.add_links(range(6), [1, 2, 3, 4, 5, 0], np.array(speeds) * 1e9)
    schedule = bfb_schedule(network_of(draft.freeze()), "allgather")
    schedule.program.check()
    assert schedule.program.chunks <= 6 * 120
    assert schedule.promise == pytest.approx(
        float(bfb_schedule(network_of(Ring(6).build()), "allgather").promise) / 12.5, rel=0.05
    )


def test_a_fat_tree_that_does_not_block_carries_the_single_round_at_full_speed():
    schedule = bfb_schedule(network_of(FatTree(4, bandwidth=1e9).build()), "allgather")
    assert schedule_cost(schedule).rounds == 1
    assert schedule.promise == Fraction(16, 15) * 10**9


@pytest.mark.parametrize(
    ("collective", "options", "message"),
    [
        ("alltoall", {}, "choose allgather"),
        ("allgather", {"segments": 0}, "give at least 1"),
        ("allgather", {"root": 1}, "leave the root out"),
        ("broadcast", {"root": 9}, "give the root as a host of the group"),
    ],
)
def test_what_does_not_exist_is_refused_with_a_remedy(collective, options, message):
    with pytest.raises(ProgramError, match=message):
        bfb_schedule(network_of(Ring(4).build()), collective, **options)
