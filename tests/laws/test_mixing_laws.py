"""Additions of reductions: closed forms, simulations of all ranks and of one of each class, flows and packets agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.collectives.cost.mixing import busiest_adds, chunked_ring_s, separate_rings_s
from ropewalk.collectives.halving_doubling import halving_doubling_all_reduce
from ropewalk.collectives.mesh import mesh_all_reduce
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.fabric import IdealSwitch, Torus
from ropewalk.routing import dimension, shortest
from ropewalk.sim import simulate_rounds
from ropewalk.sim.packet import simulate_packets
from ropewalk.sim.transports import settings_named
from ropewalk.task import TaskKind, lockstep, unroll

RATES = st.sampled_from([0.1, 0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 10.0])


def seconds(program, size, mixer, *, start_up_s=0.0, bandwidth=1.0, symmetry=True):
    """On an ideal switch."""
    rounds = lockstep(program, size, start_up_s, mixer=mixer)
    fabric = IdealSwitch(program.ranks, bandwidth=bandwidth).build()
    return simulate_rounds(rounds, shortest(fabric, *rounds.all_pairs()), symmetry=symmetry).makespan


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(2, 7), parts=st.integers(1, 5), rate=RATES, piece=st.sampled_from([1.0, 0.375]))
def test_a_ring_in_parts_takes_its_closed_form_send_bound_mix_bound_and_balanced(ranks, parts, rate, piece):
    program = ring_all_reduce([range(ranks)] * parts)
    taken = seconds(program, piece * ranks * parts, Mixer(rate))
    assert taken == pytest.approx(chunked_ring_s(ranks, parts, piece, piece / rate), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(ranks=st.integers(2, 7), rate=RATES, start_up_s=st.sampled_from([0.0, 0.25, 3.0]))
def test_a_whole_ring_sends_and_adds_in_turn(ranks, rate, start_up_s):
    taken = seconds(ring_all_reduce([range(ranks)]), float(ranks), Mixer(rate), start_up_s=start_up_s)
    assert taken == pytest.approx(chunked_ring_s(ranks, 1, 1.0 + start_up_s, 1 / rate), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(side=st.sampled_from([3, 4, 5]), rate=RATES, start_up_s=st.sampled_from([0.0, 0.5]))
def test_both_directions_of_a_ring_of_cables_share_the_adder_alone(side, rate, start_up_s):
    program = ring_all_reduce([range(side)], both_ways=True)
    rounds = lockstep(program, 2.0 * side, start_up_s, mixer=Mixer(rate))
    fabric = Torus((side,), bandwidth=1.0).build()
    taken = simulate_rounds(rounds, dimension()(fabric, *rounds.all_pairs())).makespan
    assert taken == pytest.approx(separate_rings_s(side, 2, 1.0 + start_up_s, 1 / rate), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    program=st.sampled_from(
        [mesh_all_reduce(5), halving_doubling_all_reduce(8), ring_reduce_scatter([range(5)]), mesh_all_reduce(2)]
    ),
    rate=RATES,
)
def test_programs_of_one_lane_add_what_their_busiest_rank_adds_in_every_round(program, rate):
    size = float(program.buffer_chunks)
    expected = seconds(program, size, FREE) + float(busiest_adds(program)) * size / rate
    for symmetry in (True, False):
        assert seconds(program, size, Mixer(rate), symmetry=symmetry) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(ranks=st.integers(2, 6), parts=st.integers(1, 3), rates=st.lists(RATES, min_size=2, max_size=2, unique=True))
def test_a_faster_adder_never_makes_a_ring_slower(ranks, parts, rates):
    program = ring_all_reduce([range(ranks)] * parts)
    slow, fast = sorted(rates)
    times = [seconds(program, float(ranks), mixer) for mixer in (FREE, Mixer(fast), Mixer(slow))]
    assert times[0] <= times[1] * (1 + 1e-12)
    assert times[1] <= times[2] * (1 + 1e-12)


@settings(max_examples=15, deadline=None)
@given(ranks=st.integers(2, 6), rate=RATES)
def test_gathering_adds_nothing(ranks, rate):
    program = ring_all_gather([range(ranks)])
    assert seconds(program, 1.0, Mixer(rate)) == seconds(program, 1.0, FREE)
    assert (unroll(lockstep(program, 1.0, mixer=Mixer(rate))).kind != TaskKind.COMPUTE).all()


def test_every_rank_adds_each_byte_that_it_reduces_once():
    graph = unroll(lockstep(ring_all_reduce([range(4)] * 2), 8.0, mixer=Mixer(2.0)))
    adds = graph.kind == TaskKind.COMPUTE
    assert np.bincount(graph.place[adds], graph.amount[adds]).tolist() == [3 / 4 * 8 / 2] * 4


def test_packets_pay_for_adding_in_the_seven_rounds_that_add_and_not_in_the_seven_that_gather():
    fabric = IdealSwitch(8, bandwidth=5e9, latency=1e-6).build()
    free, mixed = (lockstep(ring_all_reduce([range(8)]), 4e6, 10e-6, mixer=mixer) for mixer in (FREE, Mixer(5e9)))
    routes = shortest(fabric, *free.all_pairs())
    taken = [simulate_packets(unroll(one), routes, settings_named("rdma")).makespan for one in (free, mixed)]
    assert taken[1] - taken[0] == pytest.approx(7 * 0.5e6 / 5e9, rel=1e-9)
