"""Published wirings and demands of TopoOpt (NSDI 2023; the authors' task graphs, demo and testbed files)."""

import numpy as np
import pytest

from ropewalk.codesign.degrees import split_degree
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topology
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.planes import one_panel, patch_list
from ropewalk.codesign.selection import per_group

PEERS = {
    0: (1, 5, 7, 11), 1: (0, 2, 6, 8), 2: (1, 3, 7, 9), 3: (2, 4, 8, 10), 4: (3, 5, 9, 11), 5: (0, 4, 6, 10),
    6: (1, 5, 7, 11), 7: (0, 2, 6, 8), 8: (1, 3, 7, 9), 9: (2, 4, 8, 10), 10: (3, 5, 9, 11), 11: (0, 4, 6, 10),
}  # fmt: skip
"""The 12-server testbed: which servers the four ports of each one lead to (24 duplex cables on one panel)."""


def all_reduce(servers: int, size_bytes: float, pair_bytes: float = 0.0) -> Demands:
    pairs = np.full((servers, servers), pair_bytes / (servers * (servers - 1)))
    np.fill_diagonal(pairs, 0.0)
    return Demands(servers, (GroupSum(tuple(range(servers)), size_bytes),), pairs)


@pytest.mark.parametrize("pair_bytes", [0.0, 324403200.0])
def test_the_testbed_is_wired_as_it_was(pair_bytes: float) -> None:
    """964,935,684 bytes summed over twelve servers, with and without the 324,403,200 bytes between pairs."""
    wiring = find_topology(all_reduce(12, 964935684, pair_bytes), degree=4, bandwidth=3.125e9)
    assert wiring.rings[0].jumps == (1, 5)
    peers = {server: [] for server in PEERS}
    for patch in one_panel(wiring).patches:
        peers[patch.server].append((patch.port, patch.peer))
        peers[patch.peer].append((patch.peer_port, patch.server))
    assert {server: tuple(peer for _, peer in sorted(found)) for server, found in peers.items()} == PEERS
    assert len(one_panel(wiring).patches) == 24


def test_the_testbed_would_also_fit_on_four_panels() -> None:
    patched = patch_list(find_topology(all_reduce(12, 964935684), degree=4, bandwidth=3.125e9))
    assert patched.planes == 4
    assert [sum(patch.plane == plane for patch in patched.patches) for plane in range(4)] == [6, 6, 6, 6]


@pytest.mark.parametrize(
    ("servers", "degree", "jumps"),
    [(128, 8, (1, 3, 11, 37)), (128, 6, (1, 5, 25)), (128, 4, (1, 11)), (432, 8, (1, 5, 23, 103)), (12, 4, (1, 5))],
)
def test_the_published_rule_gives_the_published_rings(servers: int, degree: int, jumps: tuple[int, ...]) -> None:
    wiring = find_topology(all_reduce(servers, 1.0), degree=degree, bandwidth=1.0, selection=per_group(paper_jumps))
    assert wiring.rings[0].jumps == jumps
    assert sum(count for _, _, count in wiring.cables) == servers * degree // 2


DLRM_128 = 254 * 1191485444 + 30 * 16785408 + 14 * 16785408, 10603200512
CANDLE_16 = 30 * 872611852 + 14 * 1027244032 + 6 * 2852831232, 18522046464
"""Bytes of sums on the wire, 2(k-1) for each byte summed over k, and bytes between pairs, of shipped task graphs."""


@pytest.mark.parametrize(
    ("demand", "degree", "for_pairs"), [(DLRM_128, 4, 0), (DLRM_128, 8, 0), (CANDLE_16, 4, 0), (CANDLE_16, 8, 1)]
)
def test_the_split_leaves_pairs_of_the_shipped_graphs_hardly_a_port(
    demand: tuple[int, int], degree: int, for_pairs: int
) -> None:
    assert split_degree(*demand, degree, duplex=False) == (degree - for_pairs, for_pairs)
