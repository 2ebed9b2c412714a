"""Patch lists: every port once, every server once on a panel, or a refusal that says why."""

import numpy as np
import pytest

from ropewalk.codesign.colouring import colour_edges
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topology
from ropewalk.codesign.planes import fitted, least_planes, one_panel, patch_list
from ropewalk.errors import FabricError
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.strategy.seating import coset


def ringed(servers: int, degree: int, *sizes: int, duplex: bool = True) -> Wiring:
    sums = tuple(GroupSum(coset(servers, size), 1.0 / (size - 1)) for size in sizes)
    demands = Demands(servers, sums, np.zeros((servers, servers)))
    return find_topology(demands, degree=degree, bandwidth=1e9, duplex=duplex)


def test_a_duplex_ring_of_even_length_takes_two_planes_in_turn() -> None:
    patches = patch_list(ringed(6, 2, 6)).patches
    assert [(patch.plane, patch.server, patch.peer) for patch in patches] == [
        (0, 0, 1), (0, 2, 3), (0, 4, 5), (1, 0, 5), (1, 1, 2), (1, 3, 4),
    ]  # fmt: skip


def test_a_simplex_ring_takes_one_plane_whatever_its_length() -> None:
    patches = patch_list(ringed(5, 1, 5, duplex=False)).patches
    assert [(patch.server, patch.peer) for patch in patches] == [(a, (a + 1) % 5) for a in range(5)]


def test_an_odd_number_of_servers_does_not_fit_on_as_many_planes_as_ports() -> None:
    wiring = ringed(7, 2, 7)
    assert least_planes(wiring) == 3
    with pytest.raises(FabricError, match=r"7 servers cannot all be paired at once\): use an even number of servers"):
        patch_list(wiring)


def test_one_plane_more_takes_the_odd_ring_and_every_server_leaves_one_out() -> None:
    patched = patch_list(ringed(7, 2, 7), extra_planes=1)
    assert patched.planes == 3
    assert {port for patch in patched.patches for port in (patch.port, patch.peer_port)} == {0, 1}


def test_triangles_fit_where_other_cables_take_the_colours_they_leave() -> None:
    """Four rings of three among twelve servers need three planes alone, but share four with a ring over all."""
    wiring = ringed(12, 4, 3, 12)
    assert [group.size for group in wiring.rings] == [12, 3]
    assert patch_list(wiring).planes == 4


def test_two_triangles_of_doubled_cables_do_not_fit_and_six_planes_do() -> None:
    """Any two of the six cables of such a triangle share a corner, so each needs a panel of its own."""
    double = tuple((a, b, 2) for a, b in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)))
    wiring = Wiring(6, 4, True, 1e9, 0.0, (), double, 4, 0)
    with pytest.raises(FabricError, match="rings of odd length need three panels"):
        patch_list(wiring, extra_planes=1)
    assert patch_list(wiring, extra_planes=2).planes == 6


def test_parallel_cables_are_patched_one_by_one() -> None:
    patched = patch_list(Wiring(2, 3, True, 1e9, 0.0, (), ((0, 1, 3),), 3, 0))
    assert [(patch.plane, patch.port, patch.peer_port) for patch in patched.patches] == [
        (0, 0, 0),
        (1, 1, 1),
        (2, 2, 2),
    ]


def test_one_large_panel_takes_any_wiring() -> None:
    patched = one_panel(ringed(7, 2, 7))
    used = [port for patch in patched.patches for port in (patch.panel_port, patch.peer_panel_port)]
    assert (patched.planes, patched.panel_ports) == (1, 14)
    assert sorted(used) == list(range(14))


def test_a_technician_reads_both_ends_of_a_connection() -> None:
    lines = list(patch_list(ringed(3, 1, 3, duplex=False)).lines())
    assert lines[0] == "panel 0: 0 -> 1  (server 0 port 0 -> server 1 port 0)"


def test_fewer_colours_than_a_vertex_has_edges_are_not_tried() -> None:
    assert colour_edges(4, [(0, 1), (0, 2), (0, 3)], 2) is None


def test_a_wish_that_is_in_the_way_is_given_up() -> None:
    """A path of three edges whose outer two wish for different colours: one of them must change."""
    assert colour_edges(4, [(0, 1), (1, 2), (2, 3)], 2, [0, -1, 1]) in ([0, 1, 0], [1, 0, 1])


def test_a_graph_that_is_known_to_need_a_fourth_colour_is_not_given_three() -> None:
    petersen = [(a, (a + 1) % 5) for a in range(5)] + [(a, a + 5) for a in range(5)]
    petersen += [(5 + a, 5 + (a + 2) % 5) for a in range(5)]
    assert colour_edges(10, petersen, 3) is None
    assert colour_edges(10, petersen, 4) is not None


def test_a_cable_that_no_panel_has_room_for_is_left_out_but_never_one_of_a_ring() -> None:
    """Three neighbours on a ring of six that are also joined to each other: five cables among three, one a panel."""
    cables = ((0, 1, 2), (0, 2, 1), (0, 5, 1), (1, 2, 2), (2, 3, 1), (3, 4, 1), (4, 5, 1))
    wiring = Wiring(6, 4, True, 1e9, 0.0, (GroupRings(6, (1,)),), cables, 2, 2)
    with pytest.raises(FabricError, match="no assignment was found"):
        patch_list(wiring)
    kept = {(a, b): count for a, b, count in fitted(wiring).cables}
    assert {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)} <= set(kept)
    assert sum(kept.values()) == 8
    assert patch_list(fitted(wiring)).planes == 4


def test_the_finder_leaves_such_a_cable_out_unless_all_ports_are_on_one_panel() -> None:
    pairs = np.zeros((6, 6))
    pairs[0, 1] = pairs[1, 2] = pairs[0, 2] = 1.0
    demands = Demands(6, (), pairs)
    free = find_topology(demands, degree=4, bandwidth=1e9, planes=False)
    assert sum(count for a, b, count in free.cables if b <= 2) == 5
    assert sum(count for a, b, count in find_topology(demands, degree=4, bandwidth=1e9).cables if b <= 2) == 4
