"""What networks cost, against the sums that the published inputs give by hand."""

import pytest

from ropewalk.errors import InputError
from ropewalk.hardware.prices import (
    BITS,
    HALF_TREE_PORT,
    OCS_PORT,
    PANEL_PORT,
    SECOND_PANEL_PORT,
    STATIC_PORT,
    TREE_PORT,
    bandwidth_for,
    price_list,
    price_lists,
)

GBPS = 1 / BITS


def test_ports_on_panels_and_on_circuit_switches_cost_what_their_parts_do():
    prices = price_list()
    assert 4 * PANEL_PORT.cost(prices, 100 * GBPS) == pytest.approx(4 * (659 + 99 + 100 + 150)) == 4032
    assert 4 * OCS_PORT.cost(prices, 100 * GBPS) == pytest.approx(5712)
    assert 4 * STATIC_PORT.cost(prices, 100 * GBPS) == pytest.approx(4 * (659 + 99 + 75))
    assert 4 * SECOND_PANEL_PORT.cost(prices, 100 * GBPS) == pytest.approx(4032 + 4 * (100 + 25 + 150))


@pytest.mark.parametrize(("gbps", "dollars"), [(100, 2638), (200, 4833), (400, 11353), (800, 2 * 10903 + 450)])
def test_a_fat_tree_costs_a_nic_five_ports_six_transceivers_and_three_fibres(gbps, dollars):
    assert TREE_PORT.cost(price_list(), gbps * GBPS) == pytest.approx(dollars)


@pytest.mark.parametrize(("degree", "gbps"), [(4, 163.5), (8, 299.1)])
def test_the_cost_equivalent_fat_tree_has_the_bandwidth_that_its_price_leaves(degree, gbps):
    prices = price_list()
    paid = degree * PANEL_PORT.cost(prices, 100 * GBPS)
    speed = bandwidth_for(lambda rate: TREE_PORT.cost(prices, rate), paid)
    assert speed * BITS == pytest.approx(gbps, abs=0.05)
    assert TREE_PORT.cost(prices, speed) == pytest.approx(paid)


def test_the_ideal_switch_costs_two_point_eight_times_the_plan():
    prices = price_list()
    assert TREE_PORT.cost(prices, 400 * GBPS) / (4 * PANEL_PORT.cost(prices, 100 * GBPS)) == pytest.approx(
        2.8, abs=0.05
    )


def test_leaving_out_half_of_the_uplinks_saves_two_ports_two_transceivers_and_a_fibre():
    prices = price_list()
    saved = TREE_PORT.cost(prices, 400 * GBPS) - HALF_TREE_PORT.cost(prices, 400 * GBPS)
    assert saved == pytest.approx(2 * 1090 + 2 * 659 + 150)


def test_prices_between_two_rates_lie_on_the_line_and_below_the_lowest_in_proportion():
    prices = price_list()
    assert prices.at(150 * GBPS).nic == pytest.approx((659 + 1079) / 2)
    assert prices.at(25 * GBPS).nic == pytest.approx(659 / 4)
    assert prices.at(1600 * GBPS).switch_port == pytest.approx(4 * 1090)


def test_every_price_list_says_where_it_comes_from_and_grows_with_the_rate():
    for prices in price_lists().values():
        assert prices.source
        costs = [TREE_PORT.cost(prices, rate * GBPS) for rate in (10, 25, 40, 100, 200, 400)]
        assert costs == sorted(costs)


def test_what_cannot_be_priced_is_refused_with_a_remedy():
    with pytest.raises(InputError, match="use one of mixnet"):
        price_list("free")
    with pytest.raises(InputError, match="above 0"):
        price_list().at(0.0)
    with pytest.raises(InputError, match="fibre alone costs more"):
        bandwidth_for(lambda rate: TREE_PORT.cost(price_list(), rate), 400.0)


OWN = """
source = "our quotes"
patch_panel_port = 90.0
ocs_port = 500
second_panel_switch = 25.0
fibre_per_metre = 0.5
fibre_metres = 20.0
servers = {h100 = 250000}

[[rates]]
gbps = 400
nic = 1500
transceiver = 600
switch_port = 900
"""


def test_a_price_list_of_ones_own_may_have_servers(tmp_path):
    (tmp_path / "ours.toml").write_text(OWN)
    prices = price_list(str(tmp_path / "ours.toml"))
    assert (prices.source, prices.fibre, prices.servers) == ("our quotes", 10.0, {"h100": 250000.0})
    assert prices.at(50e9).nic == 1500


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ocs_port = 500", "ocs_prot = 500", "ocs_prot: unknown key: did you mean ocs_port"),
        ("ocs_port = 500", "", "ocs_port: is missing: add it"),
        ("nic = 1500", "nic = -1", "rates.0..nic: "),
        ("[[rates]]", "[rates]", "rates: .*write a list"),
        ("gbps = 400", "gbps = ", "is not TOML: .*: fix it there"),
        ("gbps = 400", "gbps = 0", "rates.0..gbps: "),
    ],
)
def test_a_price_list_with_mistakes_is_refused_with_what_to_write(tmp_path, old, new, message):
    assert old in OWN
    (tmp_path / "ours.toml").write_text(OWN.replace(old, new))
    with pytest.raises(InputError, match=message):
        price_list(str(tmp_path / "ours.toml"))


def test_a_price_list_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"price list missing\.toml does not exist: check the path"):
        price_list("missing.toml")
