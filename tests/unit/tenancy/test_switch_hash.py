"""Paths hashed as switches do it: they join the right leafs, and are those of the router of the whole fabric."""

import numpy as np
import pytest

from ropewalk.routing import murmur
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import SwitchNetwork
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.routes import links_of_flows
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.switch_hash import switch_hash


@pytest.mark.parametrize("fabric", ["leaf-spine:4x4x4", "leaf-spine:3x2x4x2", "fat-tree:4"])
def test_flows_take_the_links_that_the_hash_of_every_switch_gives(fabric: str) -> None:
    where = plant(fabric, gpus_per_server=2)
    held = gpus_only(Occupancy(where), "all", where.gpus)
    src, dst = np.divmod(np.arange(64), 8)
    leaf = where.leaf_of_gpu
    apart = leaf[src] != leaf[dst]
    src, dst = src[apart], dst[apart]
    path = switch_hash(100)(SwitchNetwork(where, where.cables, lambda: np.zeros(0), 0), held, src, dst).astype(np.int64)
    start, link = links_of_flows(where, src, dst, path)
    whole = murmur(100)(where.fabric(), src.astype(np.int32), dst.astype(np.int32))
    for flow in range(len(src)):
        row = whole.find(src[flow : flow + 1], dst[flow : flow + 1])[0]
        expected = whole.link[whole.link_start[row] : whole.link_start[row + 1]]
        assert link[start[flow] : start[flow + 1]].tolist() == expected.tolist()


def test_another_port_is_another_draw_and_nothing_crosses_where_nobody_sends() -> None:
    where = plant("leaf-spine:4x8x8", gpus_per_server=4)
    held = gpus_only(Occupancy(where), "all", 32)
    network = SwitchNetwork(where, where.cables, lambda: np.zeros(0), 0)
    src, dst = np.arange(8), np.arange(8, 16)
    first, other = (switch_hash(port)(network, held, src, dst) for port in (100, 101))
    assert (first != other).any()
    assert switch_hash(100)(network, held, src[:0], dst[:0]).shape == (0, 2)
