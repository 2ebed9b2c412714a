"""Optima of collectives on fabrics whose answers were computed independently: equal as fractions where those are known.

All-gather values come from cut enumeration, a public synthesiser's search and separate linear programs; all-reduce and
all-to-all values from separate linear programs (six digits).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics, known_rates

from ropewalk.collectives.optimum import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    network_of,
    reduce_scatter,
    reduce_scatter_then_all_gather,
)
from ropewalk.collectives.optimum.optima import BY_STRENGTH
from ropewalk.fabric import Torus

KNOWN = known_fabrics()
RATES = known_rates()


def _with(answer: str) -> Any:
    return pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN if answer in k["expected"]])


@_with("allgather")
def test_all_gather_is_the_known_fraction_with_the_known_cut(known):
    network, expected = network_of(known_fabric(known)), known["expected"]
    found = all_gather(network)
    assert found.exact
    assert found.algbw == Fraction(expected["allgather"])
    assert found.inverse_rate(len(network.members)) == Fraction(expected["allgather_inverse_rate"])
    assert len(found.bottleneck.members) == expected["members_in_cut"]
    assert found.algbw == Fraction(len(network.members), len(found.bottleneck.members)) * found.bottleneck.capacity


@_with("reducescatter")
def test_reduce_scatter_and_the_two_halves_are_the_known_fractions(known):
    network = network_of(known_fabric(known))
    assert reduce_scatter(network).algbw == Fraction(known["expected"]["reducescatter"])
    halves = reduce_scatter_then_all_gather(network)
    assert halves.algbw == Fraction(known["expected"]["reducescatter_then_allgather"])


@_with("broadcast_from_first")
def test_broadcast_is_the_known_fraction(known):
    network = network_of(known_fabric(known))
    assert broadcast(network, 0).algbw == Fraction(known["expected"]["broadcast_from_first"])


@_with("broadcast_best")
def test_the_best_root_of_a_broadcast_has_the_known_fraction(known):
    network = network_of(known_fabric(known))
    roots = range(len(network.members)) if len(network.members) <= 16 else (0, len(network.members) // 2)
    best = max(broadcast(network, root).algbw for root in roots)
    assert best == Fraction(known["expected"]["broadcast_best"])


@_with("allreduce")
def test_all_reduce_is_the_known_fraction_and_proved(known):
    found = all_reduce(network_of(known_fabric(known)))
    assert found.exact
    assert found.algbw == Fraction(known["expected"]["allreduce"])


@_with("allreduce_copying")
def test_switches_that_copy_and_add_reach_the_known_all_reduce(known):
    found = all_reduce(network_of(known_fabric(known), copying=True))
    assert float(found.algbw) == pytest.approx(known["expected"]["allreduce_copying"], abs=1e-6)
    assert not found.exact, "the cuts are a bound that trees may miss"


@_with("alltoall")
def test_all_to_all_is_the_known_rate_and_proved(known):
    # The largest is built here, because its symmetry is known then; without, it has 24,577 variables.
    fabric = Torus((4, 4, 4), bandwidth=1.0).build() if known["name"] == "torus4x4x4" else known_fabric(known)
    found = all_to_all(network_of(fabric))
    assert found.exact
    assert float(found.algbw) == pytest.approx(known["expected"]["alltoall"], abs=1e-6)


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in RATES["links"]])
def test_all_reduce_over_links_equals_the_program_over_all_trees(known):
    network = network_of(fabric_of(known["nodes"], 0, both_ways(known["duplex"])))
    assert float(all_reduce(network).algbw) == pytest.approx(known["allreduce"], abs=1e-6)
    assert all_reduce(network).method == BY_STRENGTH
    assert float(all_gather(network).algbw) == pytest.approx(known["allgather"], abs=1e-6)


@pytest.mark.parametrize("known", [pytest.param(k, id=str(k["limits"])) for k in RATES["hosts"]])
def test_all_reduce_under_host_limits_equals_the_program_over_all_trees(known):
    """Once as limits of hosts that are joined by fast links, once as links to a switch."""
    limits = known["limits"]
    hosts = len(limits)
    mesh = fabric_of(hosts, 0, both_ways([(u, v, 100) for u, v in combinations(range(hosts), 2)]))
    star = fabric_of(hosts, 1, both_ways([(host, hosts, limit) for host, limit in enumerate(limits)]))
    for network in (network_of(mesh, host_limits=limits), network_of(star)):
        found = all_reduce(network)
        assert found.exact
        assert float(found.algbw) == pytest.approx(known["allreduce"], abs=1e-6)
        assert found.algbw >= Fraction(known["ring"]).limit_denominator(1000)
