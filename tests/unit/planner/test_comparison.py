"""Networks compared: like with like, or it says that it is not."""

from dataclasses import replace

import pytest

from ropewalk.hardware import on_network, read_cluster
from ropewalk.hardware.bill import Price, PricedPart, network_price
from ropewalk.planner.comparison import Hosts, NetworkResult, compared, hosts_of

POD = read_cluster("dgx-h100:4")
HOSTS = Hosts(32, "h100", 450e9, 50e9)


def result(name, seconds, dollars, hosts=HOSTS, servers=None):
    price = Price("mixnet", (PricedPart("all", 1, dollars),), servers=servers)
    return NetworkResult(name, POD, hosts, seconds, 100 / seconds, 1e6 / seconds, 0.4, price)


def test_rows_are_sorted_by_time_and_measured_against_the_first_network_named():
    found = compared([result("rails", 2.0, 1000.0), result("rail-only", 1.0, 500.0)])
    assert [(row.result.name, row.slowdown, row.cost_ratio) for row in found.rows] == [
        ("rail-only", 0.5, 0.5), ("rails", 1.0, 1.0),
    ]  # fmt: skip
    assert found.rows[0].per_dollar == pytest.approx(1e6 / 500)


def test_equal_bandwidth_and_equal_cost_are_named_as_such():
    slow = replace(HOSTS, per_gpu=25e9)
    found = compared([
        result("rails", 1.0, 1000.0), result("leaf-spine", 1.2, 1049.0), result("rail-only", 1.1, 500.0),
        result("wire:4x400Gbps", 1.5, 960.0, slow), result("wire:2x400Gbps", 1.6, 300.0, slow),
    ])  # fmt: skip
    assert {row.result.name: row.kind for row in found.rows} == {
        "rails": "equal bandwidth and cost", "leaf-spine": "equal bandwidth and cost", "rail-only": "equal bandwidth",
        "wire:4x400Gbps": "equal cost", "wire:2x400Gbps": "unequal hosts",
    }  # fmt: skip


def test_the_cheapest_of_the_fastest_is_the_one_to_take():
    found = compared(
        [result("rails", 1.0, 1000.0), result("leaf-spine:2to1", 1.3, 700.0), result("rail-only", 1.005, 520.0)]
    )
    assert found.verdict == (
        "With equal bandwidth per GPU (400 Gbps), rail-only is recommended: 1.005 s per step, as fast as rails, "
        "and its network costs 48 % less than rails."
    )


def test_networks_that_are_all_as_fast_are_told_apart_by_cost():
    found = compared([result("rails", 1.0, 1000.0), result("fat-tree", 1.0, 1010.0)])
    assert found.verdict == (
        "With equal bandwidth per GPU (400 Gbps), rails is recommended: 1 s per step, as fast as fat-tree, "
        "at equal cost (network)."
    )


def test_a_cheaper_and_slower_network_is_named_where_it_gives_more_for_the_money():
    found = compared([
        result("rails", 1.0, 1000.0), result("leaf-spine:2to1", 1.04, 999.0), result("leaf-spine:4to1", 1.25, 600.0)
    ])  # fmt: skip
    assert found.verdict == (
        "With equal bandwidth per GPU (400 Gbps), rails is recommended: 1 s per step (leaf-spine:2to1, the "
        "next fastest, takes 4.0 % longer); leaf-spine:4to1 takes 25 % longer and costs 40 % less (network)."
    )


def test_a_network_is_named_once_where_the_next_gives_more_for_the_money():
    found = compared([result("rails", 1.0, 1000.0), result("torus", 1.03, 250.0)])
    assert found.verdict == (
        "With equal bandwidth per GPU (400 Gbps), rails is recommended: 1 s per step; torus takes 3.0 % longer and "
        "costs 75 % less (network)."
    )


def test_the_price_of_servers_counts_where_the_list_has_it():
    found = compared([
        result("rails", 1.0, 1000.0, servers=9000.0), result("leaf-spine:4to1", 1.25, 600.0, servers=9000.0)
    ])  # fmt: skip
    assert found.dollars_of == "network and servers"
    assert found.verdict.endswith(
        "(leaf-spine:4to1, the next fastest, takes 25 % longer), at equal cost (network and servers)."
    )
    one_unknown = compared([result("rails", 1.0, 1000.0, servers=9000.0), result("switch", 1.0, 900.0)])
    assert one_unknown.dollars_of == "network"


def test_unequal_hosts_are_never_compared_without_saying_so():
    slow = replace(HOSTS, per_gpu=25e9)
    by_cost = compared([result("rails", 1.0, 1000.0), result("wire:4x400Gbps", 1.5, 1010.0, slow)])
    assert by_cost.verdict == (
        "At equal cost but with unequal hosts (200 Gbps against 400 Gbps per GPU), wire:4x400Gbps is 1.50x slower than "
        "rails."
    )
    neither = compared([result("rails", 1.0, 1000.0), result("wire:4x400Gbps", 0.5, 500.0, slow)])
    assert neither.verdict == (
        "With unequal hosts (200 Gbps against 400 Gbps per GPU) and at 0.50x the cost, wire:4x400Gbps is 2.00x faster "
        "than rails."
    )
    fewer = compared([result("rails", 1.0, 1000.0), result("torus", 1.0, 500.0, replace(HOSTS, gpus=16))])
    assert "16 x h100 against 32 x h100" in fewer.verdict


def test_one_network_alone_is_not_compared():
    assert "name a second network" in compared([result("rails", 1.0, 1000.0)]).verdict


def test_networks_of_the_same_servers_have_equal_hosts():
    names = ("rails", "leaf-spine:4to1", "rail-only", "torus", "wire", "switch")
    assert all(hosts_of(on_network(POD, name)).equals(HOSTS) for name in names)
    assert not hosts_of(on_network(POD, "wire:8x200Gbps")).equals(HOSTS)


def test_json_has_all_that_the_table_has():
    made = replace(result("rails", 1.0, 1.0), price=network_price(POD))
    found = compared([made, replace(made, name="own")]).as_json()
    row = found["networks"][0]
    assert (found["reference"], found["dollars_of"]) == ("rails", "network")
    assert (row["step_time_s"], row["comparison"], row["price"]["parts"][0]["count"]) == (
        1.0,
        "equal bandwidth and cost",
        32,
    )
