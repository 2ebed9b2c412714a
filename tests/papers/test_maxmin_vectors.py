"""Max-min makespans of all-to-all on a radix-8 fat-tree, against runs of independent simulators.

Sources: SimGrid 3.32 (CM02, no cross-traffic) for D-mod-K, 25.4 ms and 26.407 ms; a separate water-filling program over
murmur-hashed paths for 31.8 ms and 32.9862 ms. Tolerance: the printed digits.
"""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.fabric import FatTree
from ropewalk.routing import ROUTERS
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, make_graph


def _all_to_all(routing: str, equal: bool) -> float:
    fabric = FatTree(8, bandwidth=5e9).build()
    src, dst = np.divmod(np.arange(128 * 128), 128)
    src, dst = src[src != dst], dst[src != dst]
    size = np.full(len(src), 1e6) if equal else 1e6 * (0.5 + ((7919 * src + 104729 * dst) % 1000) / 1000)
    graph = make_graph(np.full(len(src), TaskKind.TRANSFER), src, dst, size, np.zeros(len(src) + 1, int), [])
    routes = ROUTERS[routing].make(0)(fabric, src.astype(np.int32), dst.astype(np.int32))
    return simulate(graph, routes).makespan


def test_equal_flows_by_d_mod_k_take_the_ideal_25_4_ms():
    assert _all_to_all("dmodk", equal=True) == pytest.approx(25.4e-3, rel=1e-9)


def test_equal_flows_by_murmur_hashing_take_31_8_ms():
    assert _all_to_all("murmur", equal=True) == pytest.approx(31.8e-3, rel=1e-9)


def test_unequal_flows_by_murmur_hashing_take_32_9862_ms():
    assert _all_to_all("murmur", equal=False) == pytest.approx(32.9862e-3, abs=5e-8)


def test_unequal_flows_by_d_mod_k_take_26_407_ms():
    assert _all_to_all("dmodk", equal=False) == pytest.approx(26.407e-3, abs=5e-7)
