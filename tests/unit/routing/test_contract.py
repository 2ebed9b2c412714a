"""The validator: sound routes pass, and each kind of broken routes is refused with its own finding."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import Ring
from ropewalk.routing import Routes, source_routes

RING = Ring(4).build()
# Cable i joins h(i) and h(i+1): link 2i leads clockwise, 2i + 1 back.


def sound() -> Routes:
    return source_routes(RING, {(0, 1): [0, 1], (0, 2): [(0.5, [0, 1, 2]), (0.5, [0, 3, 2])]})


def broken(**columns: object) -> Routes:
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    return replace(sound(), **arrays)


def finding(routes: Routes) -> str:
    with pytest.raises(RouteError) as caught:
        routes.check()
    return str(caught.value)


def test_sound_routes_pass():
    routes = sound()
    routes.check()
    assert routes.link.tolist() == [0, 0, 2, 7, 5]


def test_link_id_that_the_fabric_does_not_have():
    for link in (8, -1):
        assert "outside the fabric's 8 links" in finding(broken(link=[0, 0, 2, 7, link]))


def test_pair_beyond_the_hosts():
    for node in (4, -1):
        assert "not one of the 4 hosts" in finding(broken(pair_dst=[1, node]))


def test_pair_without_destination():
    assert "differ in length" in finding(broken(pair_dst=[1]))


def test_pair_listed_twice():
    message = finding(
        broken(
            pair_src=[0, 0], pair_dst=[1, 1], path_start=[0, 1, 2], share=[1.0, 1.0], link_start=[0, 1, 2], link=[0, 0]
        )
    )
    assert message == "routes on ring:4: pairs are not unique and sorted: build them with unique_pairs"


def test_pairs_out_of_order():
    message = finding(
        broken(
            pair_dst=[2, 1], path_start=[0, 2, 3], link_start=[0, 2, 4, 5], link=[0, 2, 7, 5, 0], share=[0.5, 0.5, 1.0]
        )
    )
    assert message == "routes on ring:4: pairs are not unique and sorted: build them with unique_pairs"


def test_host_that_sends_to_itself():
    assert "pair h0->h0 has the same host at both ends" in finding(broken(pair_dst=[0, 2]))


def test_pair_without_path():
    assert "pair h0->h2 has no path" in finding(broken(path_start=[0, 3, 3]))


def test_path_without_links():
    assert "pair h0->h2 has a path without links" in finding(broken(link_start=[0, 1, 1, 5]))


@pytest.mark.parametrize(
    "columns",
    [
        {"path_start": [0, 1]},
        {"path_start": [0, 1, 2]},
        {"path_start": [1, 1, 3]},
        {"link_start": [0, 1, 3, 4]},
        {"link_start": [0, 1, 5]},
    ],
)
def test_starts_that_do_not_cover_the_entries(columns):
    assert f"{next(iter(columns))} does not cover" in finding(broken(**columns))


@pytest.mark.parametrize("share", [0.0, -0.5, np.nan])
def test_share_that_is_not_positive(share):
    assert "pair h0->h2 has a share that is not positive" in finding(broken(share=[1.0, 0.5, share]))


def test_shares_that_do_not_sum_to_one():
    assert "pair h0->h2 has shares that sum to 0.9" in finding(broken(share=[1.0, 0.5, 0.4]))


def test_shares_that_miss_one_by_a_millionth():
    assert "the shares of a pair must sum to 1" in finding(broken(share=[1.0, 0.5, 0.500001]))


def test_thirds_sum_to_one():
    routes = broken(
        path_start=[0, 1, 4], share=[1.0, 1 / 3, 1 / 3, 1 / 3], link_start=[0, 1, 3, 5, 7], link=[0, 0, 2, 7, 5, 0, 2]
    )
    routes.check()
    assert routes.paths == 4


def test_path_that_begins_elsewhere():
    message = finding(broken(link=[0, 2, 2, 7, 5], link_start=[0, 1, 2, 5], path_start=[0, 1, 3]))
    assert "pair h0->h2 has a path that does not begin at its source host" in message


def test_path_that_ends_elsewhere():
    message = finding(broken(link=[0, 0, 7, 5], link_start=[0, 1, 2, 4]))
    assert message == (
        "routes on ring:4: pair h0->h2 has a path that does not end at its destination host: add the missing links"
    )


def test_path_that_jumps():
    message = finding(broken(link=[0, 0, 5, 7, 5]))
    assert message == ("routes on ring:4: pair h0->h2 has a path with a gap between links: list its links in order")


def test_path_that_visits_a_node_twice():
    message = finding(broken(link=[0, 0, 2, 3, 2, 7, 5], link_start=[0, 1, 5, 7]))
    assert message == "routes on ring:4: pair h0->h2 has a path that visits a node twice: remove the loop"


def test_path_that_comes_back_to_its_source():
    message = finding(broken(link=[0, 7, 6, 0, 2, 7, 5], link_start=[0, 1, 5, 7]))
    assert message == "routes on ring:4: pair h0->h2 has a path that visits a node twice: remove the loop"


def test_all_findings_are_reported_at_once():
    message = finding(broken(link=[2, 0, 2, 7, 5], share=[0.5, 0.5, 0.5]))
    assert "3 findings" in message
    assert "begin" in message
    assert "end" in message
    assert "sum to 0.5" in message


def test_a_finding_says_how_many_pairs_it_concerns():
    assert "pair h0->h1 and 1 more have shares" in finding(broken(share=[0.5, 0.5, 0.1]))
