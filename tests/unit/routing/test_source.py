"""Source routes as people write them."""

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import LeafSpine, Ring
from ropewalk.routing import source, source_routes

RING = Ring(4).build()


def findings(table: object) -> str:
    with pytest.raises(RouteError) as caught:
        source_routes(RING, table)
    return str(caught.value)


def test_a_path_may_be_written_with_names_or_numbers():
    by_name = source_routes(RING, {("h0", "h2"): ["h0", "h3", "h2"]})
    by_number = source_routes(RING, {(0, 2): [0, 3, 2]})
    by_name.check()
    assert by_name.link.tolist() == by_number.link.tolist() == [7, 5]


def test_several_paths_carry_their_shares():
    routes = source_routes(RING, {("h0", "h2"): [(0.7, ["h0", "h1", "h2"]), (0.3, ["h0", "h3", "h2"])]})
    routes.check()
    assert routes.share.tolist() == [0.7, 0.3]
    assert routes.link.tolist() == [0, 2, 7, 5]


def test_pairs_come_out_sorted():
    routes = source_routes(RING, {(2, 1): [2, 1], (0, 1): [0, 1]})
    routes.check()
    assert routes.pair_src.tolist() == [0, 2]


def test_paths_over_the_same_nodes_take_parallel_links_in_order():
    fabric = LeafSpine(leafs=2, spines=1, hosts_per_leaf=1, cables=2).build()
    path = ["h0", "leaf0", "spine0", "leaf1", "h1"]
    routes = source_routes(fabric, {("h0", "h1"): [(0.5, path), (0.25, path), (0.25, path)]})
    routes.check()
    up, down = routes.link.reshape(3, 4)[:, 1], routes.link.reshape(3, 4)[:, 2]
    assert up.tolist() == [4, 6, 4]
    assert down.tolist() == [9, 11, 9]


def test_a_router_takes_the_pairs_it_is_asked_for():
    router = source({(0, 1): [0, 1], (0, 2): [(0.5, [0, 1, 2]), (0.5, [0, 3, 2])], (1, 3): [1, 0, 3]})
    routes = router(RING, np.array([1, 0, 1]), np.array([3, 2, 3]))
    routes.check()
    assert routes.pair_src.tolist() == [0, 1]
    assert routes.link.tolist() == [0, 2, 7, 5, 1, 7]


def test_a_router_refuses_pairs_that_are_not_in_its_table():
    with pytest.raises(RouteError, match="no route from h1 to h0"):
        source({(0, 1): [0, 1]})(RING, np.array([1]), np.array([0]))


def test_unknown_nodes():
    assert "has no node 'h9': name a node of the fabric" in findings({("h0", "h2"): ["h0", "h9", "h2"]})
    assert "has no node 17" in findings({("h0", 17): ["h0", "h1"]})


def test_missing_link():
    assert "there is no link from h0 to h2: name the nodes between" in findings({("h0", "h2"): ["h0", "h2"]})


@pytest.mark.parametrize("path", [["h1", "h2"], ["h0", "h1"], ["h0"], []])
def test_wrong_ends(path):
    assert "does not lead from its source to its destination" in findings({("h0", "h2"): path})


def test_loops():
    assert "visits a node twice" in findings({("h0", "h2"): ["h0", "h1", "h0", "h1", "h2"]})


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.5, -0.5), (1.0, 0.0), (float("nan"), 0.5)])
def test_bad_shares(shares):
    table = {("h0", "h2"): [(shares[0], ["h0", "h1", "h2"]), (shares[1], ["h0", "h3", "h2"])]}
    assert "give positive shares that sum to 1" in findings(table)


def test_switches_at_the_ends():
    fabric = LeafSpine(leafs=1, spines=1, hosts_per_leaf=2).build()
    with pytest.raises(RouteError, match="source routes lead from host to host"):
        source_routes(fabric, {("h0", "leaf0"): ["h0", "leaf0"]})


def test_a_host_that_sends_to_itself():
    assert "sends to itself: drop the pair" in findings({("h0", "h0"): ["h0", "h1", "h0"]})


def test_a_pair_listed_twice():
    assert "pair 0->1 is listed twice" in findings([((0, 1), [0, 1]), ((0, 1), [0, 3, 2, 1])])


def test_paths_that_cannot_be_read():
    assert "write [node, …] or [(share, [node, …]), …]" in findings({("h0", "h1"): [("half", ["h0", "h1"])]})


def test_all_findings_are_reported_at_once():
    message = findings({("h0", "h2"): ["h0", "h2"], ("h0", "h7"): ["h0", "h7"], ("h1", "h2"): [(0.5, ["h1", "h2"])]})
    assert "no link from h0 to h2" in message
    assert "no node 'h7'" in message
    assert "its shares are 0.5" in message
