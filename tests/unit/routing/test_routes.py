"""The columns of Routes and what is derived from them, on a world of four hosts in a ring."""

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import Circulant, IdealSwitch, LeafSpine, Ring
from ropewalk.routing import Routes, make_routes, shortest, source_routes, spray, unique_pairs
from ropewalk.routing.coin_routes import coin_change_routes
from ropewalk.routing.routes import FEW
from ropewalk.task import TaskGraph, TaskKind, make_graph

RING = Ring(4, latency=1e-6).build()


def two_ways() -> Routes:
    return source_routes(
        RING,
        {
            (0, 1): [0, 1],
            (0, 2): [(0.75, [0, 1, 2]), (0.25, [0, 3, 2])],
            (2, 0): [2, 3, 0],
        },
    )


def test_pairs_are_found_by_their_ends():
    assert two_ways().find([2, 0, 0, 2], [0, 2, 1, 0]).tolist() == [2, 1, 0, 2]


def test_one_pair_may_be_asked_for_without_a_list():
    assert two_ways().find(0, 2).tolist() == [1]


@pytest.mark.parametrize(("src", "dst"), [(1, 0), (3, 2), (0, 6), (1, -2), (-1, 6)])
def test_a_pair_without_a_route_is_an_error(src, dst):
    with pytest.raises(RouteError, match=r"no route from .* to .*: route every pair"):
        two_ways().find([0, src], [1, dst])


def test_usage_has_every_link_of_a_pair_once_with_all_that_the_pair_puts_on_it():
    routes = source_routes(RING, {(0, 2): [(0.75, [0, 1, 2]), (0.25, [0, 3, 2])], (1, 0): [(1.0, [1, 0])]})
    start, link, share = routes.usage()
    used = {(RING.link_name(at), part) for at, part in zip(link, share, strict=True)}
    assert start.tolist() == [0, 4, 5]
    assert used == {("h0->h1", 0.75), ("h1->h2", 0.75), ("h0->h3", 0.25), ("h3->h2", 0.25), ("h1->h0", 1.0)}


def test_usage_adds_up_paths_that_share_a_link():
    fabric = IdealSwitch(2).build()
    routes = make_routes(
        *(fabric, np.array([0]), np.array([1]), np.array([0, 0]), np.array([0.5, 0.5])),
        *(np.array([0, 0, 1, 1]), np.array([0, 3, 0, 3])),
    )
    start, link, share = routes.usage()
    assert (start.tolist(), link.tolist(), share.tolist()) == ([0, 2], [0, 3], [1.0, 1.0])


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_coin_change_is_the_same_block_by_block(monkeypatch, at_once):
    fabric = Circulant(16, (1, 6)).build()
    src, dst = np.nonzero(~np.eye(16, dtype=bool))
    whole = coin_change_routes(fabric, (1, 6), src, dst)
    monkeypatch.setattr("ropewalk.routing.coin_routes.BLOCK_PATHS", at_once)
    again = coin_change_routes(fabric, (1, 6), src, dst)
    assert again.link.tolist() == whole.link.tolist()
    assert again.share.tolist() == whole.share.tolist()


def test_latency_is_that_of_the_longest_path():
    routes = source_routes(RING, {(0, 1): [(0.5, [0, 1]), (0.5, [0, 3, 2, 1])], (1, 2): [1, 2]})
    assert routes.latency().tolist() == pytest.approx([3e-6, 1e-6])


def test_link_bytes_of_a_few_rows_are_those_of_all_to_the_last_bit(monkeypatch):
    fabric = LeafSpine(3, 3, 3).build()
    ends = np.array([(a, b) for a in range(9) for b in range(9) if a != b], np.int32)
    routes = spray(fabric, *ends.T)
    pair, size = np.array([60, 3, 17, 3, 71]), np.array([0.1, 0.7, 1e9, 0.3, 1 / 3])
    assert FEW * len(pair) < routes.pairs < routes.paths
    few = routes.link_bytes(pair, size)
    monkeypatch.setattr("ropewalk.routing.routes.FEW", routes.pairs)
    assert few.tolist() == routes.link_bytes(pair, size).tolist()


def test_link_bytes_are_conserved_hop_by_hop():
    routes = two_ways()
    rows = routes.find([0, 0, 0], [1, 2, 2])
    carried = routes.link_bytes(rows, np.array([8.0, 16.0, 4.0]))
    by_name = {RING.link_name(link): float(size) for link, size in enumerate(carried) if size}
    assert by_name == {"h0->h1": 8 + 15, "h1->h2": 15, "h0->h3": 5, "h3->h2": 5}


def test_unique_pairs_are_sorted_and_listed_once():
    src, dst = unique_pairs(RING, [3, 0, 3, 0], [0, 2, 0, 1])
    assert (src.tolist(), dst.tolist()) == ([0, 0, 3], [1, 2, 0])


def test_a_host_that_sends_to_itself_is_refused():
    with pytest.raises(RouteError, match="host h2 sends to itself"):
        unique_pairs(RING, [0, 2], [1, 2])


@pytest.mark.parametrize("node", [-1, 2, 7])
def test_only_hosts_are_routed(node):
    with pytest.raises(RouteError, match="is not a host of switch:2, whose hosts are 0 to 1"):
        unique_pairs(IdealSwitch(2).build(), [0], [node])


def test_no_pairs_make_empty_routes():
    routes = shortest(RING, np.zeros(0, np.int32), np.zeros(0, np.int32))
    routes.check()
    assert (routes.pairs, routes.paths, len(routes.latency())) == (0, 0, 0)
    assert routes.link_bytes(np.zeros(0, np.int64), np.zeros(0)).tolist() == [0.0] * RING.links


def the_other_way() -> Routes:
    return source_routes(RING, {(0, 1): [0, 3, 2, 1]})


def sends(*route: int) -> TaskGraph:
    count = len(route)
    return make_graph([TaskKind.TRANSFER] * count, 0, 1, 8.0, np.zeros(count + 1, int), [], route=route)


def test_an_appended_row_is_taken_only_by_tasks_that_name_it():
    routes = two_ways().with_rows(the_other_way())
    routes.check()
    assert routes.find([0, 2], [1, 0]).tolist() == [0, 2]
    assert routes.rows_of(sends(-1, 3, -1), np.arange(3)).tolist() == [0, 3, 0]
    assert routes.hops[routes.path_start[3]] == 3


def test_appending_twice_keeps_the_first_rows_where_they_are():
    routes = two_ways().with_rows(the_other_way()).with_rows(the_other_way())
    routes.check()
    assert routes.appended == 2
    assert routes.rows_of(sends(4, 3), np.arange(2)).tolist() == [4, 3]


@pytest.mark.parametrize("row", [1, 7])
def test_a_task_that_names_a_row_of_other_hosts_is_refused(row):
    routes = two_ways().with_rows(the_other_way())
    with pytest.raises(RouteError, match=r"task 1 takes row .* joins other hosts: give the routes"):
        routes.rows_of(sends(-1, row), np.arange(2))
