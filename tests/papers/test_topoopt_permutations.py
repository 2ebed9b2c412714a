"""Jumps, diameters and mean hops of TopoOpt's circulants (Wang et al., "TopoOpt", NSDI 2023).

Sources: the chained rule is the paper's; the rounded-up sets are those of the code the authors published, two of
which are the wirings of their web demo (DLRM-16-4, NCF-128-4; DLRM-128-8 follows the paper's rule). Hops are counted
on these sets.
"""

from __future__ import annotations

import pytest
from circulant_hops import best_jumps, diameter, mean_hops

from ropewalk.codesign.permutations import paper_jumps, round_up_jumps
from ropewalk.codesign.totient import totient_jumps

CHAINED_SIMPLEX = {
    (12, 4): (1, 5, 11, 7),
    (16, 3): (1, 3, 7),
    (16, 4): (1, 3, 5, 9),
    (128, 4): (1, 3, 11, 37),
    (128, 6): (1, 3, 7, 15, 33, 75),
    (128, 8): (1, 3, 5, 9, 17, 31, 57, 105),
    (432, 8): (1, 5, 11, 23, 49, 103, 221, 431),
}
"""(servers, ports): jumps; a simplex ring takes one port."""

CHAINED_DUPLEX = {
    (12, 4): (1, 5),
    (16, 4): (1, 3),
    (128, 4): (1, 11),
    (128, 6): (1, 5, 25),
    (128, 8): (1, 3, 11, 37),
    (432, 8): (1, 5, 23, 103),
}
"""A duplex ring takes two ports."""

ROUNDED_UP_DUPLEX = {
    (12, 4): (1, 5),
    (16, 4): (1, 5),
    (128, 4): (1, 13),
    (128, 6): (1, 7, 27),
    (128, 8): (1, 5, 13, 39),
    (432, 8): (1, 5, 23, 95),
}

DISTANCES = [
    (12, (1, 5), True, 3, 1.8181818181818181),
    (16, (1, 5), True, 4, 2.1333333333333333),
    (16, (1, 3), True, 4, 2.1333333333333333),
    (16, (1, 3, 7), False, 4, 2.2666666666666666),
    (128, (1, 13), True, 10, 5.622047244094488),
    (128, (1, 11), True, 9, 5.480314960629921),
    (128, (1, 15), True, 8, 5.354330708661418),
    (128, (1, 5, 13, 39), True, 5, 2.9606299212598426),
    (128, (1, 3, 11, 37), True, 5, 2.9291338582677167),
    (128, (1, 3, 11, 37), False, 8, 4.519685039370079),
    (432, (1, 5, 23, 95), True, 7, 4.088167053364269),
]

COUNTS = {
    8: (4, 2, 4),
    12: (4, 2, 4),
    16: (8, 4, 6),
    24: (8, 4, 8),
    32: (16, 8, 11),
    64: (32, 16, 18),
    96: (32, 16, 23),
    128: (64, 32, 31),
    256: (128, 64, 54),
    432: (144, 72, 82),
    512: (256, 128, 97),
    1008: (288, 144, 166),
}
"""Group size: directed rings, duplex rings, 1 and the primes that do not divide it."""


@pytest.mark.parametrize("servers_ports", CHAINED_SIMPLEX, ids=str)
def test_the_chained_rule_gives_the_papers_simplex_jumps(servers_ports):
    servers, ports = servers_ports
    assert paper_jumps(servers, ports, duplex=False) == CHAINED_SIMPLEX[servers_ports]


@pytest.mark.parametrize("servers_ports", CHAINED_DUPLEX, ids=str)
def test_the_chained_rule_gives_the_papers_duplex_jumps(servers_ports):
    servers, ports = servers_ports
    assert paper_jumps(servers, ports // 2, duplex=True) == CHAINED_DUPLEX[servers_ports]


@pytest.mark.parametrize("servers_ports", ROUNDED_UP_DUPLEX, ids=str)
def test_rounding_up_gives_the_jumps_of_the_published_code(servers_ports):
    servers, ports = servers_ports
    candidates = totient_jumps(servers, duplex=True)
    assert round_up_jumps(servers, ports // 2, candidates, duplex=True) == ROUNDED_UP_DUPLEX[servers_ports]


@pytest.mark.parametrize(("servers", "jumps", "duplex", "farthest", "mean"), DISTANCES)
def test_diameter_and_mean_hops(servers, jumps, duplex, farthest, mean):
    assert diameter(servers, jumps, duplex) == farthest
    assert mean_hops(servers, jumps, duplex) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("size", COUNTS)
def test_a_group_has_as_many_rings_as_eulers_totient_says(size):
    counted = (
        len(totient_jumps(size, duplex=False)),
        len(totient_jumps(size, duplex=True)),
        len(totient_jumps(size, prime_only=True, duplex=False)),
    )
    assert counted == COUNTS[size]


@pytest.mark.parametrize(
    ("rings", "jumps", "farthest", "mean"),
    [(2, (1, 15), 8, 5.354), (3, (1, 7, 49), 5, 3.433), (4, (1, 5, 21, 35), 4, 2.866)],
)
def test_the_search_finds_the_best_circulants_of_128_servers(rings, jumps, farthest, mean):
    assert best_jumps(128, rings, duplex=True) == jumps
    assert diameter(128, jumps, True) == farthest
    assert mean_hops(128, jumps, True) == pytest.approx(mean, abs=5e-4)
