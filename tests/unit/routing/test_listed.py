"""Routes written down as nodes: they come back the same, and a lost link is named."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import Ring, Torus
from ropewalk.routing import shortest
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.routing.listed import listed, router_listed, routes_listed
from ropewalk.routing.routes import Routes


def same(a: Routes, b: Routes) -> bool:
    columns = ("pair_src", "pair_dst", "path_start", "share", "link_start", "link")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in columns)


def every_pair(hosts: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.divmod(np.arange(hosts * hosts), hosts)
    return a[a != b].astype(np.int32), b[a != b].astype(np.int32)


def test_routes_over_several_paths_come_back_the_same() -> None:
    fabric = Torus((3, 3)).build()
    routes = k_shortest(3)(fabric, *every_pair(9))
    assert routes.paths > routes.pairs
    assert same(routes_listed(fabric, listed(routes)), routes)


def test_a_router_of_listed_paths_serves_the_pairs_that_are_asked_for() -> None:
    fabric = Ring(5).build()
    paths = listed(shortest(fabric, *every_pair(5)))
    some = np.array([3, 0, 3], np.int32), np.array([0, 2, 0], np.int32)
    assert same(router_listed(paths)(fabric, *some), shortest(fabric, *some))


def test_a_pair_that_is_not_listed_is_refused() -> None:
    fabric = Ring(5).build()
    with pytest.raises(RouteError, match="no route"):
        router_listed(((1.0, (0, 1)),))(fabric, np.array([1], np.int32), np.array([0], np.int32))


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (((1.0, (0, 2)),), "needs a link from .* which does not exist"),
        (((1.0, (0,)),), "leaves the fabric"),
        (((1.0, (0, 9)),), "leaves the fabric"),
        (((0.5, (0, 1)),), "share"),
    ],
)
def test_what_is_no_route_of_the_fabric_is_named(paths: tuple[tuple[float, tuple[int, ...]], ...], said: str) -> None:
    with pytest.raises(RouteError, match=said):
        routes_listed(Ring(5).build(), paths)
