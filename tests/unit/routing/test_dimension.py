"""Dimension-order routing: paths on tiny grids, and the exact link loads known for tori and BCubes."""

from importlib import import_module

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import BCube, Builder, FatTree, Hypercube, Mesh, Ring, Torus
from ropewalk.routing import Router, Routes, dimension, dimension_rotated


def all_to_all(hosts: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.divmod(np.arange(hosts * hosts), hosts)
    return src[src != dst], dst[src != dst]


def flows(routes: Routes) -> np.ndarray:
    routes.check()
    return routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))


def push(builder: Builder, router: Router) -> np.ndarray:
    """Load of every link when all hosts send one unit to host 0, the parameter server."""
    fabric = builder.build()
    return flows(router(fabric, np.arange(1, fabric.hosts), np.zeros(fabric.hosts - 1, np.int32)))


def ways(builder: Builder, router: Router, src: int, dst: int) -> dict[tuple[int, ...], float]:
    """Share of each path, given as the nodes behind the source."""
    fabric = builder.build()
    routes = router(fabric, np.array([src]), np.array([dst]))
    routes.check()
    node = fabric.link_dst[routes.link].tolist()
    spans = zip(routes.link_start[:-1], routes.link_start[1:], strict=True)
    return {tuple(node[a:b]): float(share) for (a, b), share in zip(spans, routes.share, strict=True)}


def test_the_first_axis_is_corrected_first_by_the_shorter_way():
    # 5 x 5, from (0, 0) to (1, 3): down one row, then two columns to the left.
    assert ways(Torus((5, 5)), dimension(), 0, 8) == {(5, 9, 8): 1.0}


def test_antipodal_bytes_go_half_and_half_both_ways():
    assert ways(Ring(4), dimension(), 0, 2) == {(1, 2): 0.5, (3, 2): 0.5}


def test_antipodal_bytes_may_all_go_clockwise():
    assert ways(Ring(4), dimension(split_ties=False), 1, 3) == {(2, 3): 1.0}


def test_two_antipodal_axes_make_four_paths():
    shares = ways(Torus((4, 4)), dimension(), 0, 10)
    assert shares == {(4, 8, 9, 10): 0.25, (12, 8, 9, 10): 0.25, (4, 8, 11, 10): 0.25, (12, 8, 11, 10): 0.25}


def test_an_axis_of_two_has_one_way():
    assert ways(Torus((2, 3)), dimension(), 0, 4) == {(3, 4): 1.0}


def test_an_axis_of_one_is_passed_over():
    assert ways(Torus((1, 3, 1)), dimension_rotated(), 0, 2) == {(2,): 1.0}


def test_a_mesh_does_not_wrap_around():
    assert ways(Mesh((2, 4)), dimension(), 0, 7) == {(4, 5, 6, 7): 1.0}
    assert ways(Mesh((4,)), dimension(), 3, 0) == {(2, 1, 0): 1.0}


def test_a_hypercube_flips_the_lowest_bit_first():
    assert ways(Hypercube(3), dimension(), 0, 7) == {(1, 3, 7): 1.0}


def test_hosts_of_a_bcube_relay_between_levels():
    # Hosts 0…8, level-0 switches 9…11, level-1 switches 12…14: from 00 to 12 over host 02.
    assert ways(BCube(3, 2), dimension(), 0, 5) == {(9, 2, 14, 5): 1.0}
    assert ways(BCube(3, 2), dimension_rotated(), 0, 5) == {(9, 2, 14, 5): 0.5, (12, 3, 10, 5): 0.5}


def test_rotated_orders_each_carry_one_kth():
    shares = ways(Hypercube(3), dimension_rotated(), 0, 7)
    assert shares == pytest.approx({(1, 3, 7): 1 / 3, (2, 6, 7): 1 / 3, (4, 5, 7): 1 / 3})


def test_rotations_that_are_the_same_path_stand_once():
    assert ways(Torus((3, 3, 3)), dimension_rotated(), 0, 1) == {(1,): 1.0}
    # Axes 1 and 2 move: orders 012 and 120 begin with axis 1, order 201 begins with axis 2.
    assert ways(Torus((3, 3, 3)), dimension_rotated(), 0, 4) == pytest.approx({(3, 4): 2 / 3, (1, 4): 1 / 3})


@pytest.mark.parametrize("router", [dimension(), dimension_rotated()], ids=["fixed", "rotated"])
@pytest.mark.parametrize(("side", "axes"), [(3, 2), (4, 2), (5, 2), (6, 2), (8, 2), (4, 3)])
def test_all_to_all_on_a_torus_loads_every_link_with_n_eighths(side, axes, router):
    torus = Torus((side,) * axes)
    load = flows(router(torus.build(), *all_to_all(torus.hosts))) / torus.hosts
    exact = side / 8 if side % 2 == 0 else (side**2 - 1) / (8 * side)
    assert load == pytest.approx(np.full(2 * axes * torus.hosts, exact), rel=1e-12)


@pytest.mark.parametrize("side", [4, 6, 8])
def test_antipodal_flows_that_all_go_clockwise_cost_a_quarter_more_per_side(side):
    torus = Torus((side, side))
    load = flows(dimension(split_ties=False)(torus.build(), *all_to_all(torus.hosts))) / torus.hosts
    assert load.max() == pytest.approx((side + 2) / 8, rel=1e-12)
    assert load.min() == pytest.approx((side - 2) / 8, rel=1e-12)


@pytest.mark.parametrize(("ports", "levels"), [(3, 2), (4, 2), (5, 2), (4, 3)])
def test_all_to_all_on_a_bcube_loads_every_nic_alike(ports, levels):
    cube = BCube(ports, levels)
    for router in (dimension(), dimension_rotated()):
        load = flows(router(cube.build(), *all_to_all(cube.hosts))) / cube.hosts
        assert load == pytest.approx(np.full(2 * levels * cube.hosts, (ports - 1) / ports), rel=1e-12)


@pytest.mark.parametrize(
    ("shape", "fixed", "rotated"), [((3, 3), 3, 2), ((4, 4), 6, 3.75), ((5, 5), 10, 6), ((4, 4, 4), 24, 10.5)]
)
def test_rotation_balances_the_last_hop_at_a_parameter_server_on_a_torus(shape, fixed, rotated):
    assert push(Torus(shape), dimension()).max() == pytest.approx(fixed)
    assert push(Torus(shape), dimension_rotated()).max() == pytest.approx(rotated)


@pytest.mark.parametrize(("ports", "levels"), [(3, 2), (4, 2), (4, 3)])
def test_rotation_balances_the_last_hop_at_a_parameter_server_on_a_bcube(ports, levels):
    cube = BCube(ports, levels)
    assert push(cube, dimension()).max() == pytest.approx((ports - 1) * ports ** (levels - 1))
    assert push(cube, dimension_rotated()).max() == pytest.approx((cube.hosts - 1) / levels)


def test_large_all_to_all_is_worked_out_in_pieces(monkeypatch):
    torus = Torus((4, 6)).build()
    whole = dimension_rotated()(torus, *all_to_all(24))
    monkeypatch.setattr(import_module("ropewalk.routing.dimension"), "_HOPS_AT_ONCE", 7)
    pieces = dimension_rotated()(torus, *all_to_all(24))
    assert len(whole.link) > 1000
    assert (whole.link == pieces.link).all()


@pytest.mark.parametrize("router", [dimension(), dimension_rotated()])
def test_no_pairs_make_empty_routes(router):
    routes = router(Torus((4, 4)).build(), np.zeros(0, np.int32), np.zeros(0, np.int32))
    routes.check()
    assert routes.paths == 0


@pytest.mark.parametrize(("router", "name"), [(dimension(), "dimension"), (dimension_rotated(), "dimension-rotated")])
def test_a_fat_tree_has_no_dimensions(router, name):
    with pytest.raises(RouteError, match=rf"router {name} needs coordinates .*, which fat-tree:4 is not"):
        router(FatTree(4).build(), np.array([0]), np.array([1]))
