"""What networks cost, against the sums that the published inputs give by hand."""

import pytest

from ropewalk.codesign.prices import (
    BITS,
    bandwidth_for,
    direct_cost,
    fat_tree_cost,
    look_ahead_cost,
    ocs_cost,
    oversubscribed_cost,
    price_list,
    price_lists,
    static_cost,
)
from ropewalk.errors import InputError

GBPS = 1 / BITS


def test_ports_on_panels_and_on_circuit_switches_cost_what_their_parts_do():
    prices = price_list()
    assert direct_cost(prices, 4, 100 * GBPS) == pytest.approx(4 * (659 + 99 + 100 + 150)) == 4032
    assert ocs_cost(prices, 4, 100 * GBPS) == pytest.approx(5712)
    assert static_cost(prices, 4, 100 * GBPS) == pytest.approx(4 * (659 + 99 + 75))
    assert look_ahead_cost(prices, 4, 100 * GBPS) == pytest.approx(4032 + 4 * (100 + 25 + 150))


@pytest.mark.parametrize(("gbps", "dollars"), [(100, 2638), (200, 4833), (400, 11353), (800, 2 * 10903 + 450)])
def test_a_fat_tree_costs_a_nic_five_ports_six_transceivers_and_three_fibres(gbps, dollars):
    assert fat_tree_cost(price_list(), gbps * GBPS) == pytest.approx(dollars)


@pytest.mark.parametrize(("degree", "gbps"), [(4, 163.5), (8, 299.1)])
def test_the_cost_equivalent_fat_tree_has_the_bandwidth_that_its_price_leaves(degree, gbps):
    prices = price_list()
    paid = direct_cost(prices, degree, 100 * GBPS)
    speed = bandwidth_for(lambda rate: fat_tree_cost(prices, rate), paid)
    assert speed * BITS == pytest.approx(gbps, abs=0.05)
    assert fat_tree_cost(prices, speed) == pytest.approx(paid)


def test_the_ideal_switch_costs_two_point_eight_times_the_plan():
    prices = price_list()
    assert fat_tree_cost(prices, 400 * GBPS) / direct_cost(prices, 4, 100 * GBPS) == pytest.approx(2.8, abs=0.05)


def test_leaving_out_half_of_the_uplinks_saves_two_ports_two_transceivers_and_a_fibre():
    prices = price_list()
    saved = fat_tree_cost(prices, 400 * GBPS) - oversubscribed_cost(prices, 400 * GBPS)
    assert saved == pytest.approx(2 * 1090 + 2 * 659 + 150)


def test_prices_between_two_rates_lie_on_the_line_and_below_the_lowest_in_proportion():
    prices = price_list()
    assert prices.at(150 * GBPS).nic == pytest.approx((659 + 1079) / 2)
    assert prices.at(25 * GBPS).nic == pytest.approx(659 / 4)
    assert prices.at(1600 * GBPS).switch_port == pytest.approx(4 * 1090)


def test_every_price_list_says_where_it_comes_from_and_grows_with_the_rate():
    for prices in price_lists().values():
        assert prices.source
        costs = [fat_tree_cost(prices, rate * GBPS) for rate in (10, 25, 40, 100, 200, 400)]
        assert costs == sorted(costs)


def test_what_cannot_be_priced_is_refused_with_a_remedy():
    with pytest.raises(InputError, match="use one of mixnet"):
        price_list("free")
    with pytest.raises(InputError, match="above 0"):
        price_list().at(0.0)
    with pytest.raises(InputError, match="fibre alone costs more"):
        bandwidth_for(lambda rate: fat_tree_cost(price_list(), rate), 400.0)
