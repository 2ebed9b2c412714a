"""Straight lines over the size, and how few rounds there can be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ropewalk.collectives.breadth_first import bfb_schedule, neighbours_of
from ropewalk.collectives.cost.counted import counted
from ropewalk.collectives.forest.segments import best_segments, forest_seconds
from ropewalk.collectives.latency import schedule_cost
from ropewalk.collectives.mesh import mesh_all_reduce
from ropewalk.collectives.optimum import network_of
from ropewalk.collectives.rooted import binomial_broadcast
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProgramError
from ropewalk.fabric import Circulant, FabricDraft, Hypercube, Ring, Torus
from ropewalk.routing import dimension, shortest


def _everyone(fabric):
    rank = np.arange(fabric.hosts, dtype=np.int32)
    return tuple(end.astype(np.int32) for end in np.nonzero(rank[:, None] != rank))


def test_the_line_of_a_mesh_on_a_torus_is_what_counting_says():
    torus = Torus((3, 3), bandwidth=1e9).build()
    program, routes = mesh_all_reduce(9), dimension()(torus, *_everyone(torus))
    cost = schedule_cost(Schedule("mesh", program, np.arange(9, dtype=np.int32), routes))
    form = counted(program, routes, 1e9)
    assert (cost.rounds, cost.seconds_per_byte) == (form.rounds, form.bandwidth_term / 10**9)
    assert cost.seconds(9e6, 1e-5) == pytest.approx(form.seconds(9e6, 1e9, 1e-5))


def test_ranks_are_counted_where_their_hosts_are():
    """The same program on hosts in another order crosses more links."""
    ring = Ring(6, bandwidth=1e9).build()
    program, routes = bfb_schedule(network_of(ring), "allgather").program, shortest(ring, *_everyone(ring))
    in_order = Schedule("in order", program, np.arange(6, dtype=np.int32), routes)
    mixed = Schedule("mixed", program, np.array([0, 3, 1, 4, 2, 5], np.int32), routes)
    assert schedule_cost(mixed).seconds_per_byte > schedule_cost(in_order).seconds_per_byte


def test_every_round_waits_for_the_latency_of_its_longest_way():
    draft = FabricDraft("far")
    draft.add_hosts(["a", "b", "c"])
    draft.add_links([0, 0], [1, 2], 1e9, latency=[1e-6, 5e-6])
    fabric = draft.freeze()
    routes = shortest(fabric, np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32))
    cost = schedule_cost(Schedule("binomial", binomial_broadcast(3), np.arange(3, dtype=np.int32), routes))
    assert cost.rounds == 2
    assert cost.latency_s == pytest.approx(6e-6)


@pytest.mark.parametrize("bad", [(-1.0, 0.0), (1.0, -1.0), (math.inf, 0.0), (math.nan, 0.0)])
def test_sizes_and_start_ups_that_are_none_are_refused(bad):
    network = network_of(Ring(3).build())
    with pytest.raises(ProgramError, match="give 0 or more"):
        schedule_cost(bfb_schedule(network, "allgather")).seconds(*bad)


@pytest.mark.parametrize("ranks", [2, 3, 8, 9, 63, 64, 65])
def test_with_one_port_a_binomial_tree_needs_the_fewest_rounds(ranks):
    assert len(binomial_broadcast(ranks).rounds) == math.ceil(math.log2(ranks))


def moore_rounds(ranks, degree):
    """Rounds in which a rank can reach all others over cables of `degree` ports: N <= 1 + d + d(d-1) + … (Moore)."""
    rounds, reached, newest = 0, 1, degree
    while reached < ranks:
        rounds, reached, newest = rounds + 1, reached + newest, newest * (degree - 1)
    return rounds


@pytest.mark.parametrize(
    "fabric", [Ring(9), Torus((4, 4)), Hypercube(3), Circulant(13, (1, 5))], ids=lambda f: f.expression
)
def test_no_fabric_has_fewer_rounds_than_its_moore_bound(fabric):
    built = fabric.build()
    degree = int(np.bincount(built.link_src).max())
    diameter = neighbours_of(network_of(built)).diameter
    assert moore_rounds(built.hosts, degree) <= diameter


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("depth", [1, 2, 7])
def test_whole_segments_come_close_to_the_limit_of_a_pipeline_and_never_below(size, depth):
    algbw, start_up = Fraction(100 * 10**9), 1e-6
    # Were segments divisible at will: (√(M/B) + √((h-1)α))².
    limit = (math.sqrt(size / float(algbw)) + math.sqrt((depth - 1) * start_up)) ** 2
    best = forest_seconds(size, algbw, depth, start_up, best_segments(size, algbw, depth, start_up))
    floor = depth * start_up
    assert limit <= best * (1 + 1e-12)
    assert best <= max(limit * 1.05, limit + floor)
