"""Rings on fabrics where the best ones are known."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics

from ropewalk.collectives.best_ring import best_ring, ring_schedule
from ropewalk.collectives.optimum import all_gather, network_of
from ropewalk.collectives.ring_orders import Rings, best_rings_of
from ropewalk.errors import ProgramError
from ropewalk.fabric import BCube, Dgx, FatTree, IdealSwitch, Mesh, RandomRegular, Torus

KNOWN = {known["name"]: known for known in known_fabrics()}


def test_on_a_dgx_1v_three_rings_both_ways_keep_every_nvlink_busy():
    network = network_of(known_fabric(KNOWN["dgx1v"]))
    found = best_rings_of(network)
    assert (len(found.orders), found.both_ways) == (3, True)
    schedule = best_ring(network, "allgather")
    schedule.program.check()
    assert schedule.promise == all_gather(network).algbw == Fraction(1200, 7)
    pairs = {(u, v): speed for u, v, speed in KNOWN["dgx1v"]["duplex"]}
    used = dict.fromkeys(pairs, 0)
    for order in found.orders:
        for a, b in zip(order.tolist(), np.roll(order, -1).tolist(), strict=True):
            used[min(a, b), max(a, b)] += 1
    assert {ends: 25 * count for ends, count in used.items()} == {ends: float(s) for ends, s in pairs.items()}


@pytest.mark.parametrize(
    "fabric", [Torus((4, 4)), BCube(3, 2), IdealSwitch(12), FatTree(4)], ids=lambda f: f.expression
)
def test_rings_that_a_fabric_is_known_for_reach_the_optimum(fabric):
    network = network_of(fabric.build())
    schedule = best_ring(network, "allgather")
    schedule.program.check()
    assert schedule.promise == all_gather(network).algbw


def test_rings_leave_a_server_by_all_its_rails():
    network = network_of(Dgx(2).build())
    assert best_rings_of(network).rate == pytest.approx(8 * 25e9)


def test_servers_that_are_joined_by_links_of_their_own_are_found():
    """Two rings of four, each host with a slow way to the same switch."""
    links = [(4 * box + at, 4 * box + (at + 1) % 4, 10) for box in range(2) for at in range(4)]
    fabric = fabric_of(8, 1, both_ways(links + [(host, 8, 2) for host in range(8)]))
    assert best_rings_of(network_of(fabric)).rate >= 8


@pytest.mark.parametrize("seed", range(4))
def test_of_up_to_ten_ranks_the_best_single_ring_is_found(seed):
    """Against all orders, on links of random speeds; one way only, as speeds differ by direction."""
    random = np.random.default_rng(seed)
    pairs = [(u, v) for u in range(6) for v in range(6) if u != v]
    speeds = random.integers(1, 50, len(pairs))
    network = network_of(fabric_of(6, 0, [(u, v, Fraction(int(s))) for (u, v), s in zip(pairs, speeds, strict=True)]))
    every = [
        ring_schedule(network, Rings(np.array([(0, *rest)]), False, 0.0), "allgather", "ring").promise
        for rest in permutations(range(1, 6))
    ]
    assert best_ring(network, "allgather").promise >= max(every)


@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "allreduce", "broadcast", "reduce"])
@pytest.mark.parametrize(
    ("fabric", "options"),
    [
        (Mesh((3, 3)), {}),
        (Torus((3, 4)), {"group": [7, 1, 0, 10]}),
        (RandomRegular(12, 3), {}),
        (Dgx(3, gpus=2), {}),
        (Mesh((2, 3)), {"host_limits": [1e9] * 6}),
        (IdealSwitch(2), {}),
        (IdealSwitch(3), {}),
    ],
    ids=lambda value: getattr(value, "expression", ""),
)
def test_the_best_rings_are_proved_and_never_slower_than_the_natural_order(fabric, options, collective):
    network = network_of(fabric.build(), **options)
    in_order = Rings(np.arange(len(network.members))[None, :], False, 0.0)
    ring, natural = best_ring(network, collective), ring_schedule(network, in_order, collective, "ring")
    for schedule in (ring, natural):
        schedule.program.check()
        schedule.routes.check()
    assert ring.promise >= natural.promise


def test_the_same_seed_finds_the_same_rings():
    network = network_of(RandomRegular(24, 3).build())
    first, second = best_rings_of(network, seed=3), best_rings_of(network, seed=3)
    assert np.array_equal(first.orders, second.orders)
    assert first.rate == second.rate


def test_what_rings_do_not_carry_is_refused_with_a_remedy():
    network = network_of(IdealSwitch(3).build())
    with pytest.raises(ProgramError, match="choose allgather"):
        best_ring(network, "alltoall")
    with pytest.raises(ProgramError, match="give the root as a host of the group"):
        best_ring(network, "broadcast", root=5)


def test_rings_refuse_shards_that_differ():
    network = network_of(Torus((2, 2)).build(), shards=[1, 2, 1, 1])
    with pytest.raises(ProgramError, match="rings support equal shards only"):
        best_ring(network, "allgather")


def test_groups_that_sit_alike_are_searched_once_and_get_the_same_rings(monkeypatch):
    from ropewalk.collectives import _ring_search, ring_orders

    calls, search = [], _ring_search.improve
    monkeypatch.setattr(ring_orders, "_SEARCHED", {})
    monkeypatch.setattr(_ring_search, "improve", lambda *given: (calls.append(given), search(*given))[1])
    network = network_of(RandomRegular(12, 3).build())
    first = ring_orders.best_rings_of(network)
    searched = len(calls)
    again = ring_orders.best_rings_of(network)
    assert searched > 0
    assert len(calls) == searched
    assert again.orders.tolist() == first.orders.tolist()
    assert ring_orders.best_rings_of(network, seed=1).rate > 0
    assert len(calls) > searched
