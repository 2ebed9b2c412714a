"""Ring bytes, bandwidth tax and link loads of TopoOpt's 128-server designs (Wang et al., NSDI 2023).

Sources: bytes on ring links from the traffic matrices of the authors' web demo (to the byte); tax of the all-to-all
workload (figures 12 to 15: DLRM with 128 tables, one on each server) computed from its sizes, given to two decimals;
link loads of uniform all-to-all on one random shortest path for each pair, counted on the same circulants.
"""

from __future__ import annotations

import numpy as np
import pytest
from design_tax import routes_of, tax_of

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.totient import directed_jumps
from ropewalk.fabric import Circulant
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.routing import coin_change_routes

DLRM_DENSE_PARAMETERS = 339_818_497
PAIR_BYTES_FOR_EACH_SAMPLE = 4096
"""Both ways: 2 x 4 GPUs x 128 numbers x 4 bytes for each sample of a GPU's batch."""

TAX = {
    (1, 13): {64: 1.06, 128: 1.11, 256: 1.22, 512: 1.42, 1024: 1.76, 2048: 2.31},
    (1, 5, 13, 39): {64: 1.02, 128: 1.05, 256: 1.09, 512: 1.18, 1024: 1.32, 2048: 1.56},
}
"""Duplex jumps: batch of a GPU: tax, sums counted at one hop."""


def _rings_only(servers: int, jumps: tuple[int, ...]) -> Wiring:
    cables = tuple((*sorted((a, (a + jump) % servers)), 1) for jump in jumps for a in range(servers))
    degree = 2 * len(jumps)
    return Wiring(servers, degree, True, 12.5e9, 0.0, (GroupRings(servers, jumps),), cables, degree, 0)


@pytest.mark.parametrize(
    ("parameters", "jumps", "link_bytes"),
    [(DLRM_DENSE_PARAMETERS, (1, 3, 11, 37), 337_163_664), (134_252_546, (1, 13), 266_407_395)],
    ids=["DLRM-128-8", "NCF-128-4"],
)
def test_bytes_on_every_ring_link_of_the_demo_to_the_byte(parameters, jumps, link_bytes):
    rings = len(directed_jumps(128, jumps, duplex=True))
    assert 2 * (128 - 1) * 4 * parameters // (128 * rings) == link_bytes  # 2(k-1)S/(kR)


@pytest.mark.parametrize(
    ("servers", "jumps", "links"), [(16, (1, 5), 32), (128, (1, 3, 11, 37), 512), (128, (1, 13), 256)]
)
def test_cables_of_the_demo_wirings(servers, jumps, links):
    wiring = _rings_only(servers, jumps)
    assert len(set(wiring.cables)) == links
    assert (wiring.ports_used() == 2 * len(jumps)).all()


@pytest.mark.parametrize("jumps", TAX, ids=str)
@pytest.mark.parametrize("batch", [64, 128, 256, 512, 1024, 2048])
def test_tax_of_the_all_to_all_workload(jumps, batch):
    wiring = _rings_only(128, jumps)
    pairs = PAIR_BYTES_FOR_EACH_SAMPLE * batch * (1.0 - np.eye(128))
    demands = Demands(128, (GroupSum(tuple(range(128)), 4.0 * DLRM_DENSE_PARAMETERS),), pairs)
    tax = tax_of(wiring, demands, routes_of(wiring, demands))
    assert tax.tax == pytest.approx(TAX[jumps][batch], abs=0.0051)
    assert tax.sums_carried == pytest.approx(tax.sums_asked, rel=1e-12)


def test_pair_bytes_of_the_demo_are_those_of_batch_256():
    assert PAIR_BYTES_FOR_EACH_SAMPLE * 256 == 1_048_576


@pytest.mark.parametrize(
    ("jumps", "mean", "random_max"), [((1, 13), 178.5, 219), ((1, 5, 13, 39), 47.0, 68)], ids=["d=4", "d=8"]
)
def test_chosen_orders_load_links_more_equally_than_random_paths_and_shares_still_more(jumps, mean, random_max):
    fabric = Circulant(128, jumps).build()
    src, dst = np.nonzero(~np.eye(128, dtype=bool))
    fullest = {}
    for shared in (False, True):
        routes = coin_change_routes(fabric, jumps, src, dst, shared=shared)
        load = routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))
        assert load.mean() == pytest.approx(mean, rel=1e-9)
        fullest[shared] = load.max()
    assert fullest[True] < fullest[False] < random_max
