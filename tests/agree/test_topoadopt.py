"""Near-optimal forests beside independently known optima, and beside the best ring where bandwidths differ."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from optimum_worlds import both_ways, fabric_of, known_fabric, known_fabrics, known_rates

from ropewalk.collectives.optimum import all_reduce, network_of
from ropewalk.collectives.topoadopt import topoadopt_all_gather, topoadopt_forest

MOST_MEMBERS = 32
NEAR = Fraction(97, 100)
"""What all of them reach when they are asked for 0.95."""

KNOWN = [known for known in known_fabrics() if len(known["compute"]) <= MOST_MEMBERS]
RATES = known_rates()


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN])
def test_an_all_gather_is_near_the_known_fraction_and_its_bound_is_not_below(known):
    found = topoadopt_all_gather(network_of(known_fabric(known)))
    found.check()
    optimum = Fraction(known["expected"]["allgather"])
    assert NEAR * optimum <= found.algbw <= optimum <= found.bound <= optimum * Fraction(101, 100)


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN if "allreduce" in k["expected"]])
def test_an_all_reduce_is_near_the_known_fraction_and_its_bound_is_not_below(known):
    found = topoadopt_forest(network_of(known_fabric(known)))
    found.check()
    optimum = Fraction(known["expected"]["allreduce"])
    assert NEAR * optimum <= found.algbw <= optimum <= found.bound <= optimum * Fraction(101, 100)


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in RATES["links"]])
def test_over_links_it_is_near_the_program_over_all_trees(known):
    found = topoadopt_forest(network_of(fabric_of(known["nodes"], 0, both_ways(known["duplex"]))))
    found.check()
    _is_near(found, known["allreduce"])


@pytest.mark.parametrize("known", [pytest.param(k, id=str(k["limits"])) for k in RATES["hosts"]])
def test_under_host_limits_it_is_near_the_program_over_all_trees(known):
    """Once as limits of hosts that are joined by fast links, once as links to a switch."""
    limits = known["limits"]
    hosts = len(limits)
    mesh = fabric_of(hosts, 0, both_ways([(u, v, 100) for u, v in combinations(range(hosts), 2)]))
    star = fabric_of(hosts, 1, both_ways([(host, hosts, limit) for host, limit in enumerate(limits)]))
    for network in (network_of(mesh, host_limits=limits), network_of(star)):
        found = topoadopt_forest(network)
        found.check()
        _is_near(found, known["allreduce"])


def _is_near(found, rate):
    """The known rates have six digits."""
    assert float(NEAR) * rate <= float(found.algbw) <= rate * (1 + 1e-6) + 1e-6
    assert float(found.bound) >= rate * (1 - 1e-6) - 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [4, 6])
def test_where_bandwidths_differ_by_pair_trees_beat_the_best_ring(workers, seed):
    """Bandwidths between 1 and 10 for every pair; the ring is the best of all, run in both directions at once."""
    speeds = np.random.default_rng(seed).integers(1, 11, (workers, workers))
    links = [(u, v, int(speeds[u, v])) for u, v in combinations(range(workers), 2)]
    network = network_of(fabric_of(workers, 0, both_ways(links)))
    speed = {ends: value for u, v, value in links for ends in ((u, v), (v, u))}
    slowest = max(
        min(speed[order[at], order[(at + 1) % workers]] for at in range(workers))
        for order in ((0, *rest) for rest in permutations(range(1, workers)))
    )
    ring = Fraction(workers * slowest, workers - 1)
    found, optimum = topoadopt_forest(network), all_reduce(network).algbw
    found.check()
    assert ring < found.algbw <= optimum <= found.bound
    assert found.algbw >= NEAR * optimum
