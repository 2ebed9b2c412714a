"""Published bandwidths of forests with a fixed number of trees for each root.

Source: the synthesiser of ForestColl (arXiv 2402.06787), run with its own topologies of A100 and MI250 servers; GB/s to
the digits that it prints. Here the same values are exact fractions, so the tolerance is half of the last digit.
"""

from __future__ import annotations

import pytest
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics

from ropewalk.collectives.forest.fixed import fixed_forest
from ropewalk.collectives.optimum import Network, all_gather, network_of

KNOWN = {known["name"]: known for known in known_fabrics()}

A100_TWO = {1: 342.857, 2: 342.857, 3: 342.857, 4: 342.857, 5: 342.857, 6: 342.857, 7: 346.392, 8: 345.946, 10: 345.324,
            13: 346.667}  # fmt: skip
MI250_ONE = {1: 266.667, 2: 320.0, 3: 342.857, 5: 333.333}
MI250_TWO = {1: 320.0, 2: 341.333, 3: 342.857, 4: 341.333, 5: 347.826, 6: 342.857, 7: 350.0, 8: 345.946, 83: 354.133}


def two_mi250_servers() -> Network:
    """Two servers of sixteen, each GPU with 16 GB/s to one switch."""
    inside = KNOWN["mi250x1x16"]["duplex"]
    links = [(u + 16 * box, v + 16 * box, speed) for box in range(2) for u, v, speed in inside]
    links += [(gpu, 32, "16") for gpu in range(32)]
    return network_of(fabric_of(32, 1, both_ways(links)))


def check_published(network: Network, published: dict[int, float], *, trees_up_to: int) -> None:
    for trees, bandwidth in published.items():
        if trees <= trees_up_to:
            forest = fixed_forest(network, trees, "allgather")
            forest.check()
            assert float(forest.algbw) == pytest.approx(bandwidth, abs=5e-4)
            assert len(forest.trees) == trees * len(network.members)
            assert len({tree.rate for tree in forest.trees}) == 1
            assert all(len(branch.ways) == 1 for tree in forest.trees for branch in tree.branches)


def test_two_a100_servers_with_one_to_thirteen_trees_for_each_root():
    check_published(network_of(known_fabric(KNOWN["dgx_a100_2box"])), A100_TWO, trees_up_to=13)


def test_an_mi250_server_with_one_to_five_trees_for_each_root():
    check_published(network_of(known_fabric(KNOWN["mi250x1x16"])), MI250_ONE, trees_up_to=5)


def test_two_mi250_servers_with_one_to_eight_trees_for_each_root():
    network = two_mi250_servers()
    check_published(network, MI250_TWO, trees_up_to=8)
    assert float(all_gather(network).algbw) == pytest.approx(MI250_TWO[83], abs=5e-4)
