"""The 12-server, 4-port testbed of TopoOpt (Wang et al., NSDI 2023): rings, hops and the relay rules on its servers.

Source: the task graph and scripts published with the paper. Where several payments are equally short the published ones
were picked at random, so the payment has to be among ours.
"""

from __future__ import annotations

import numpy as np
import pytest
from multi_hop import multi_hop_rings

from ropewalk.codesign.forwarding import forwarding_of
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.totient import directed_jumps, totient_jumps
from ropewalk.fabric import Circulant
from ropewalk.routing import Routes, coin_change, coin_change_routes, source_routes

JUMPS = (1, 5, 7, 11)

MIN_HOPS = [0, 1, 2, 3, 2, 1, 2, 1, 2, 3, 2, 1]

RINGS_BY_GROUP_SIZE = {
    12: [(5,), (7,), (11,), (1,)],
    6: [(1, 1), (11, 11)],
    4: [(11, 5, 11), (1, 7, 1)],
    3: [(5, 11), (7, 1)],
    2: [(5, 1), (7, 11)],
}
"""Every hop of a ring of a group of this size as jumps of cables."""

HOP_RULE = {
    1: (1,),
    2: (1, 1),
    3: (5, 11, 11),
    4: (5, 11),
    5: (5,),
    6: (7, 11),
    -6: (1, 5),
    7: (7,),
    8: (1, 7),
    9: (1, 1, 7),
    10: (11, 11),
    11: (11,),
}
"""Distance to jumps, in order, as configured on the servers; -6 where the number of the server decreases."""


def test_its_four_ports_are_all_rings_that_twelve_servers_have():
    assert totient_jumps(12, duplex=False) == JUMPS
    assert sorted(directed_jumps(12, paper_jumps(12, 2, duplex=True), duplex=True)) == list(JUMPS)


def test_fewest_hops_by_distance():
    assert coin_change(12, JUMPS).hops.tolist() == MIN_HOPS


@pytest.mark.parametrize("size", RINGS_BY_GROUP_SIZE)
def test_groups_without_cables_of_their_own_ride_the_published_multi_hop_rings(size):
    ours = multi_hop_rings(12, size, JUMPS)
    payments = {payment for ring in ours for payment in ring.payments}
    for published in RINGS_BY_GROUP_SIZE[size]:
        assert tuple(sorted(published)) in payments
        assert sum(published) % 12 in {ring.jump * 12 // size for ring in ours}
    assert {ring.jump * 12 // size for ring in ours} == {sum(ring) % 12 for ring in RINGS_BY_GROUP_SIZE[size]}


@pytest.mark.parametrize("distance", HOP_RULE)
def test_the_hop_rule_of_the_servers_has_the_fewest_hops(distance):
    assert tuple(sorted(HOP_RULE[distance])) in coin_change(12, JUMPS).payments(distance)


def _hardware_routes(rule: dict[int, tuple[int, ...]]) -> Routes:
    table = {}
    for src in range(12):
        for dst in set(range(12)) - {src}:
            jumps = rule[dst - src if dst - src in rule else (dst - src) % 12]
            table[src, dst] = [(src + int(jump)) % 12 for jump in np.cumsum([0, *jumps])]
    return source_routes(Circulant(12, (1, 5)).build(), table)


def test_the_hop_rule_of_the_servers_fits_tables_by_incoming_port_and_destination():
    routes = _hardware_routes(HOP_RULE)
    routes.check()
    tables = forwarding_of(routes)
    assert all(
        tables.follow(int(link), int(dst))[-1] == dst
        for link, dst in zip(tables.departs_by, tables.target, strict=True)
    )


def test_coin_change_routes_all_pairs_in_the_fewest_hops_with_equal_load():
    src, dst = np.nonzero(~np.eye(12, dtype=bool))
    routes = coin_change_routes(Circulant(12, (1, 5)).build(), (1, 5), src, dst)
    routes.check()
    hops = routes.hops[routes.path_start[:-1]]
    assert hops.tolist() == [MIN_HOPS[(b - a) % 12] for a, b in zip(routes.pair_src, routes.pair_dst, strict=True)]
    load = routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))
    assert load == pytest.approx(np.full(48, 5.0), rel=1e-3)
