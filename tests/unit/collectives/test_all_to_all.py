"""All-to-all at the optimum: ways of pairs, routes, programs in which members pass chunks on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from optimum_worlds import both_ways, fabric_of

from ropewalk.collectives import direct_all_to_all
from ropewalk.collectives.all_to_all import (
    all_to_all_schedule,
    best_paths,
    direct_schedule,
    in_pieces,
    relayed_schedule,
)
from ropewalk.collectives.all_to_all._trace import take_path
from ropewalk.collectives.all_to_all.balance import balanced_flow
from ropewalk.collectives.all_to_all.decompose import paths_of_flow
from ropewalk.collectives.all_to_all.routing import routes_of_pairs
from ropewalk.collectives.optimum import all_to_all, network_of
from ropewalk.collectives.optimum.concurrent import largest_concurrent_flow, shortest_concurrent_flow
from ropewalk.errors import ProgramError, ProofError
from ropewalk.fabric import BCube, Circulant, Dgx, Dragonfly, FatTree, LeafSpine, Mesh, RandomRegular, Ring, Torus
from ropewalk.routing import shortest
from ropewalk.routing.one_sender import OneSender
from ropewalk.sim.simulate import simulate_rounds
from ropewalk.task import lockstep

FABRICS = [
    Ring(5), Torus((3, 4)), Mesh((3, 3)), Dgx(3, 4), Dgx(2, 4, rails=2, spines=2), LeafSpine(3, 2, 4, cables=2),
    FatTree(4), BCube(3, 2), Circulant(12, (1, 5)), Dragonfly(3, 2, 2, 1),
]  # fmt: skip

ROUNDING = 1e-9


def _seconds(schedule, size):
    return simulate_rounds(lockstep(schedule.program, size, hosts=schedule.hosts), schedule.routes).makespan


@pytest.mark.parametrize("builder", FABRICS, ids=lambda builder: builder.expression)
def test_ways_of_all_pairs_reach_the_optimum_and_the_simulation_agrees(builder):
    network = network_of(builder.build())
    paths = best_paths(network)
    paths.check()
    assert paths.gap == 0
    assert paths.algbw == all_to_all(network).algbw
    everybody = paths.of_all_members()
    everybody.check()
    assert everybody.rate == paths.rate
    schedule = direct_schedule(paths)
    schedule.program.check()
    schedule.routes.check()
    assert _seconds(schedule, 1e9) * float(schedule.promise) == pytest.approx(1e9, rel=1e-6)


@pytest.mark.parametrize("builder", FABRICS, ids=lambda builder: builder.expression)
def test_members_that_pass_chunks_on_reach_the_optimum_in_many_segments(builder):
    paths = best_paths(network_of(builder.build()))
    few = relayed_schedule(paths, 2)
    few.program.check()
    few.routes.check()
    many = relayed_schedule(paths, 250)
    assert many.promise == paths.algbw
    assert 1 - ROUNDING <= _seconds(many, 1e9) * float(many.promise) / 1e9 < 1.01


def test_links_carry_exactly_what_the_optimum_allows_when_members_pass_chunks_on():
    """Counted from the program alone: chunks over every link of a fabric of links between hosts."""
    fabric = Mesh((3, 3), bandwidth=1.0).build()
    schedule = all_to_all_schedule(network_of(fabric), store_and_forward=True, segments=3)
    program = schedule.program
    crossed: dict[tuple[int, int], int] = {}
    for step in program.rounds:
        sends = zip(step.pattern.src.tolist(), step.pattern.dst.tolist(), step.pattern.chunks.tolist(), strict=True)
        for src, dst, chunks in sends:
            crossed[src, dst] = crossed.get((src, dst), 0) + chunks
    joined = set(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
    assert set(crossed) <= joined
    assert Fraction(program.buffer_chunks, max(crossed.values())) == schedule.promise


@pytest.mark.parametrize(
    ("builder", "gain"), [(RandomRegular(24, 4), 1.9), (Dragonfly(3, 2, 2, 1), 1.0), (Circulant(20, (1, 3)), 1.4)]
)
def test_balanced_ways_beat_shortest_ones_where_these_meet_on_few_links(builder, gain):
    network = network_of(builder.build())
    hosts = network.fabric.hosts
    pairs = np.nonzero(~np.eye(hosts, dtype=bool))
    usual = shortest(network.fabric, pairs[0].astype(np.int32), pairs[1].astype(np.int32))
    slow = simulate_rounds(lockstep(direct_all_to_all(hosts), 1e9), usual).makespan
    assert slow / _seconds(all_to_all_schedule(network), 1e9) >= gain - ROUNDING


def test_a_group_is_served_by_hosts_outside_it_which_can_be_ranks():
    """Hosts 0 and 2 of a ring of four: both ways round lead through hosts that are not in the group."""
    network = network_of(Ring(4, bandwidth=1.0).build(), group=[2, 0])
    assert all_to_all(network).algbw == 4
    direct = all_to_all_schedule(network)
    assert (direct.promise, direct.hosts.tolist(), direct.program.ranks) == (4, [2, 0], 2)
    assert direct.routes.share.tolist() == [0.5] * 4
    relayed = all_to_all_schedule(network, store_and_forward=True, segments=2, relays_as_ranks=True)
    relayed.program.check()
    assert relayed.hosts.tolist() == [2, 0, 1, 3]
    assert relayed.program.sent_chunks().tolist() == [4, 4, 4, 4]
    assert (relayed.routes.hops == 1).all()
    through = all_to_all_schedule(network, store_and_forward=True)
    assert through.program.ranks == 2
    assert (through.routes.hops == 2).all()


def test_parallel_links_are_used_in_proportion_to_their_bandwidths():
    """Two cables of 1 and 3 then two of 2 and 2: the parts of a way end where those of either arc end."""
    one_way = [(0, 2, 1), (0, 2, 3), (2, 1, 2), (2, 1, 2), (1, 0, 4)]
    schedule = all_to_all_schedule(network_of(fabric_of(2, 1, one_way)))
    there = slice(0, int(schedule.routes.path_start[1]))
    assert schedule.routes.share[there].tolist() == [0.25, 0.25, 0.5]
    assert schedule.routes.link[:6].tolist() == [0, 2, 1, 2, 1, 3]
    assert schedule.promise == 8


def test_limits_of_hosts_bind_and_leave_no_trace_in_routes():
    fabric = Ring(4, bandwidth=10.0).build()
    network = network_of(fabric, host_limits=[4.0] * 4)
    schedule = all_to_all_schedule(network)
    schedule.routes.check()
    assert schedule.promise == all_to_all(network).algbw == 4


def test_a_thousand_hosts_need_the_ways_of_one_sender():
    for builder, expected in ((Torus((32, 32)), 3.125e9), (Dgx(128), 25e9 * 128 / 127)):
        network = network_of(builder.build())
        paths = best_paths(network)
        assert paths.gap == 0
        assert float(paths.algbw) == pytest.approx(expected, rel=1e-12)
        trace = simulate_rounds(
            lockstep(direct_all_to_all(1024), 1e9), OneSender(network.symmetry, routes_of_pairs(paths))
        )
        assert trace.makespan * expected == pytest.approx(1e9, rel=1e-9)


def test_ways_too_many_to_write_out_are_refused_with_what_to_do_instead(monkeypatch):
    monkeypatch.setattr("ropewalk.collectives.all_to_all.paths.MOST_HOPS", 100)
    with pytest.raises(ProgramError, match="use fewer hosts"):
        all_to_all_schedule(network_of(Torus((4, 4)).build()))


def test_a_walk_back_forgets_cycles_and_flow_from_nowhere():
    """0 -> 1 -> 2 carries 2; a cycle 1 -> 3 -> 1 carries 5; arc 4 -> 2 has flow that nobody sends."""
    tail, head = np.array([0, 1, 1, 3, 4]), np.array([1, 2, 3, 1, 2])
    order = np.argsort(head, kind="stable")
    first = np.searchsorted(head[order], np.arange(6))
    # Depths mislead on purpose: the walk prefers vertices 3 and 4.
    depth, ends = np.array([9, 2, 3, 0, 0]), np.array([0, 2])
    for take, kind in ((take_path, np.int64), (take_path.py_func, object)):
        flow, place, path = np.array([2, 2, 5, 5, 1], kind), np.full(5, -1), np.zeros(6, np.int64)
        assert take(first, order, tail, depth, flow, ends, 1, place, path) == (2, 1)
        assert path[:2].tolist() == [1, 0]
        assert flow.tolist() == [1, 1, 0, 0, 0]
        assert (place == -1).all()
        assert take(first, order, tail, depth, flow, ends, 7, place, path) == (2, 1)
        assert take(first, order, tail, depth, flow, ends, 7, place, path)[0] == 0
        assert (place == -1).all()


def test_shorter_ways_have_the_same_rate_and_fewer_hops():
    network = network_of(replace(Mesh((5, 5)).build(), builder=None))
    found = largest_concurrent_flow(network)
    short = shortest_concurrent_flow(network, found)
    assert short.flow.sum() < found.flow.sum()
    assert paths_of_flow(network, short).rate == paths_of_flow(network, found).rate


def test_a_balanced_flow_is_as_near_the_optimum_as_its_prices_prove():
    network = network_of(RandomRegular(24, 4, bandwidth=1e9).build())
    best = best_paths(network)
    near = paths_of_flow(network, balanced_flow(network, near_enough=0.02), fractions=False)
    near.check()
    assert near.rate <= best.bound
    assert best.rate <= near.bound
    assert near.gap < Fraction(25, 1000)
    again = paths_of_flow(network, balanced_flow(network, near_enough=0.02), fractions=False)
    assert (again.rate, again.bound) == (near.rate, near.bound)


def test_a_network_too_large_for_the_linear_program_is_balanced(monkeypatch):
    monkeypatch.setattr("ropewalk.collectives.all_to_all.decompose.SOLVED_UP_TO", 10)
    schedule = all_to_all_schedule(network_of(Mesh((3, 3), bandwidth=1.0).build()))
    schedule.routes.check()
    assert Fraction(147, 100) <= schedule.promise <= Fraction(3, 2)
    assert 9.0 / _seconds(schedule, 9.0) == pytest.approx(float(schedule.promise), rel=1e-6)


def test_few_pieces_promise_what_they_reach():
    network = network_of(RandomRegular(32, 4).build())
    paths = best_paths(network)
    assert paths.whole > 16
    rates = [in_pieces(paths, most).rate / paths.rate for most in (1, 4, 16, 64)]
    assert rates == sorted(rates)
    assert Fraction(1, 2) < rates[0] < 1
    assert rates[-1] > Fraction(99, 100)
    for most in (1, 4, 16, 64):
        in_pieces(paths, most).check()


def test_bad_questions_are_refused():
    network = network_of(Ring(4).build())
    with pytest.raises(ProgramError, match="0 segments"):
        all_to_all_schedule(network, store_and_forward=True, segments=0)
    with pytest.raises(ProgramError, match="0 pieces"):
        in_pieces(best_paths(network), 0)
    with pytest.raises(ProgramError, match="use fewer segments"):
        all_to_all_schedule(network, store_and_forward=True, segments=1 << 23)
    with pytest.raises(ProgramError, match="leave the shards out"):
        all_to_all_schedule(network_of(Ring(4).build(), shards=[1, 1, 1, 2]))


def test_ways_that_carry_too_little_or_lead_astray_are_no_proof():
    paths = best_paths(network_of(Ring(4).build()))
    with pytest.raises(ProofError, match="carry all"):
        replace(paths, whole=2 * paths.whole).check()
    with pytest.raises(ProofError, match="does not lead"):
        replace(paths, destination=np.roll(paths.destination, 1)).check()


def test_links_both_ways_of_different_speed_are_used_as_they_are():
    """Three hosts in a line, the second link half as fast: its two pairs each way set the pace."""
    network = network_of(fabric_of(3, 0, both_ways([(0, 1, 4), (1, 2, 2)])))
    schedule = all_to_all_schedule(network, store_and_forward=True, segments=300)
    assert schedule.promise == 3
    assert 1 - ROUNDING <= _seconds(schedule, 1e3) * 3 / 1e3 < 1.01
