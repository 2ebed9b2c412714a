"""Seconds of sums and transfers that have a network to themselves, by arithmetic."""

import numpy as np
import pytest
from tiny_seats import circle, switch

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.errors import RouteError

RATE = 1e6


def test_a_sum_on_a_switch_takes_two_n_minus_one_over_n():
    loads = LinkLoads(switch(8, RATE, 0.0), 8)
    assert loads.sum_seconds(range(8), 8e6) == pytest.approx(2 * 7 / 8 * 8e6 / RATE)
    assert loads.sum_seconds((0, 3, 5), 3e6) == pytest.approx(2 * 2 / 3 * 3e6 / RATE)
    assert loads.sum_seconds((4,), 3e6) == 0


def test_two_rings_halve_the_bytes_and_leave_the_rounds():
    loads = LinkLoads(circle(6, RATE, 1e-3), 6)
    assert loads.sum_seconds(range(6), 6e6) == pytest.approx(2 * 5 / 6 * 6e6 / 2 / RATE + 10 * 1e-3)


def test_a_group_that_is_spread_out_is_relayed_over_every_link_between():
    loads = LinkLoads(circle(6, RATE, 0.0), 6)
    load = loads.sum_load((0, 2, 4))
    assert len(load.link) == 12
    assert loads.sum_seconds((0, 2, 4), 3e6) == pytest.approx(2 * 2 / 3 * 3e6 / 2 / RATE)


def test_transfers_meet_where_they_share_a_link():
    loads = LinkLoads(switch(4, RATE, 1e-3), 4)
    assert loads.pairs_seconds([0, 1, 2], [3, 3, 3], [1e6, 2e6, 3e6]) == pytest.approx(6 + 2e-3)
    assert loads.pairs_seconds([0, 1], [2, 3], [1e6, 2e6]) == pytest.approx(2 + 2e-3)
    assert loads.pairs_seconds([], [], []) == 0


def test_loads_count_the_bytes_on_every_link_of_the_way():
    loads = LinkLoads(circle(5, RATE, 0.0), 5)
    load = loads.pairs_load(np.array([0, 1]), np.array([2, 2]), np.array([1e6, 1e6]))
    assert sorted(load.seconds.tolist()) == [1.0, 2.0]
    assert sorted(load.flows.tolist()) == [1.0, 2.0]


def test_loads_of_some_demands_are_those_of_all_pairs_and_others_are_refused():
    pairs = np.zeros((6, 6))
    pairs[0, 3] = 1e6
    asked = Demands(6, (GroupSum((0, 2, 4), 1e6),), pairs)
    some, every = (LinkLoads(circle(6, RATE, 0.0), 6, one) for one in (asked, None))
    assert some.sum_seconds((0, 2, 4), 3e6) == every.sum_seconds((0, 2, 4), 3e6)
    assert some.pairs_seconds([0], [3], [1e6]) == every.pairs_seconds([0], [3], [1e6])
    with pytest.raises(RouteError, match="pairs that nobody asked for"):
        some.pairs_load([1], [2], [1e6])


@pytest.mark.parametrize("network", [switch, circle])
@pytest.mark.parametrize("asked", ["all pairs", "some pairs"])
def test_loads_are_those_that_adding_up_transfer_by_transfer_gives(network, asked):
    draw, servers = np.random.default_rng(3), 9
    made = network(servers, RATE, 1e-6)
    pairs = np.triu(draw.random((servers, servers)), 1)
    loads = LinkLoads(made, servers, Demands(servers, (), pairs) if asked == "some pairs" else None)
    src, dst = np.nonzero(pairs)
    routes = made.router(made.fabric, src, dst)
    row, size = routes.find(src, dst), pairs[src, dst]
    load = loads.pairs_load(src, dst, size)
    assert load.latency == routes.latency()[row].max()
    seconds, flows = np.zeros(made.fabric.links), np.zeros(made.fabric.links)
    seconds[load.link], flows[load.link] = load.seconds, load.flows
    assert seconds == pytest.approx(routes.link_bytes(row, size) / RATE)
    assert flows == pytest.approx(routes.link_bytes(row, np.ones(len(row))))
    assert load.link.tolist() == np.flatnonzero(flows).tolist()
