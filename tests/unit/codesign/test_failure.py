"""Cables of a design that fail: where their bytes go, and what is refused."""

import numpy as np
import pytest
from tiny_plans import circle

from ropewalk.codesign.failure import detour, without_cables
from ropewalk.errors import FabricError
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.plans import Designed
from ropewalk.routing import shortest
from ropewalk.routing.listed import listed, routes_listed


def designed(wiring: Wiring) -> Designed:
    everyone = np.arange(wiring.servers)
    return Designed(wiring, listed(shortest(wiring.fabric(), *np.nonzero(everyone[:, None] != everyone))))


def test_the_hop_that_lost_its_cable_goes_over_a_cable_for_pairs_where_that_is_as_short():
    left, detours = without_cables(designed(circle(12)), ["server0-server5"])
    # 0-6-5 uses the cable between opposite servers; 0-1-…, 0-11-… take three hops over rings.
    assert detours == {(0, 5): (0, 6, 5), (5, 0): (5, 6, 0)}
    assert (0, 5) not in {(a, b) for a, b, _ in left.wiring.cables}
    assert (1.0, (0, 6, 5)) in left.routes


def test_without_cables_for_pairs_it_goes_over_other_rings():
    _, detours = without_cables(designed(circle(12, matched=False)), ["server1-server0"])
    assert len(detours[0, 1]) == 4


def test_all_pairs_still_have_paths_without_loops():
    left, _ = without_cables(designed(circle(12)), ["server0-server5", "server3-server8"])
    routes_listed(left.fabric(), left.routes)  # every hop has a cable, shares of a pair sum to 1
    assert len({(nodes[0], nodes[-1]) for _, nodes in left.routes}) == 12 * 11
    assert all(len(set(nodes)) == len(nodes) for _, nodes in left.routes)


def test_a_pair_with_a_second_cable_keeps_its_paths():
    double = Wiring(2, 2, True, 1e9, 0.0, (GroupRings(2, (1,)),), ((0, 1, 2),), 2, 0)
    left, detours = without_cables(designed(double), ["server0-server1"])
    assert (left.wiring.cables, detours) == (((0, 1, 1),), {})


def test_one_direction_of_simplex_cables_fails_by_itself():
    ring = Wiring(3, 2, False, 1e9, 0.0, (GroupRings(3, (1, 2)),), ((0, 1, 1), (1, 2, 1), (2, 0, 1), (1, 0, 1)), 2, 0)
    _, detours = without_cables(designed(ring), ["server1->server0"])
    assert detours == {(1, 0): (1, 2, 0)}


def test_cables_that_are_not_there_are_refused_together_with_those_that_are():
    with pytest.raises(FabricError, match=r"(?s)2 findings.*no cable server0-server3: it has server0-server1, .*spine"):
        without_cables(designed(circle(12)), ["server0-server3", "spine0-leaf1"])


def test_the_last_cable_leaves_no_path():
    pair = circle(2, (1,), matched=False)
    with pytest.raises(FabricError, match="server1 is no longer reachable from server0: plan again"):
        without_cables(designed(pair), ["server0-server1"])
    assert detour(pair, 0, 1) == (0, 1)
