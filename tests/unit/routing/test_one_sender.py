"""Routes of one sender: which routers look alike from every host, and how one that does not is found out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.fabric import BCube, FatTree, Hypercube, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.routing import ROUTERS, dimension, dmodk, ecmp
from ropewalk.routing import one_sender as module
from ropewalk.routing.one_sender import one_sender

FOLLOWED = [
    (IdealSwitch(512), "dmodk"), (LeafSpine(16, 32, 32), "dmodk"), (LeafSpine(32, 4, 16, cables=2), "dmodk"),
    (LeafSpine(8, 4, 8), "spray"), (FatTree(12), "dmodk"), (FatTree(6), "spray"), (BCube(8, 3), "dimension"),
    (BCube(16, 2), "dimension-rotated"), (Torus((8, 8, 8)), "dimension"), (Torus((9, 12)), "dimension-rotated"),
    (Hypercube(7), "dimension-rotated"), (Ring(33), "dimension"),
]  # fmt: skip


@pytest.mark.parametrize(("builder", "router"), FOLLOWED, ids=lambda value: getattr(value, "expression", value))
def test_every_pair_is_routed_as_from_host_0_where_the_arithmetic_is_that_of_the_fabric(builder, router):
    fabric = builder.build()
    assert fabric.hosts * (fabric.hosts - 1) <= module.CHECKED_WHOLE
    sender = one_sender(fabric, ROUTERS[router].make(0))
    assert sender is not None
    assert sender.routes.pair_dst.tolist() == list(range(1, fabric.hosts))


@pytest.mark.parametrize(
    ("builder", "router"),
    [(builder, router) for builder, router in FOLLOWED if builder.hosts <= 150],
    ids=lambda value: getattr(value, "expression", value),
)
def test_bytes_on_every_link_are_those_of_all_pairs(builder, router):
    fabric = builder.build()
    everyone = np.arange(fabric.hosts)
    whole = ROUTERS[router].make(0)(fabric, *np.nonzero(everyone[:, None] != everyone))
    expected = whole.link_bytes(np.arange(whole.pairs), np.full(whole.pairs, 7.0))
    sender = one_sender(fabric, ROUTERS[router].make(0))
    assert sender.link_bytes(7.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("builder", "router"),
    [(FatTree(4), "ecmp"), (FatTree(4), "murmur"), (LeafSpine(4, 4, 4), "ecmp-polarised"), (Torus((4, 4)), "ecmp"),
     (BCube(4, 2), "ecmp"), (Torus((4, 4)), "shortest"), (FatTree(4), "shortest")],
    ids=lambda value: getattr(value, "expression", value),
)  # fmt: skip
def test_hashes_and_ties_by_link_id_tell_hosts_apart(builder, router, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(module, "CHECKED_WHOLE", 0)
    assert one_sender(builder.build(), ROUTERS[router].make(0)) is None


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("odd", [1, 5, 15])
def test_one_host_that_routes_another_way_is_found_out(odd, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(module, "CHECKED_WHOLE", 0)
        monkeypatch.setattr(module, "CHECKED_PER_HOST", 8)

    def router(fabric, src, dst):
        plain, other = dimension()(fabric, src, dst), dimension(split_ties=False)(fabric, src, dst)
        return plain if (src != odd).all() else other

    fabric = Torus((4, 4)).build()
    assert one_sender(fabric, dimension()) is not None
    assert one_sender(fabric, router) is None


def test_one_slower_link_ends_it():
    fabric = Torus((4, 4)).build()
    speed = fabric.bandwidth.copy()
    speed[11] /= 2
    assert one_sender(replace(fabric, bandwidth=speed), dimension()) is None


def test_a_path_with_another_share_is_another_path():
    def lopsided(fabric, src, dst):
        routes = dimension()(fabric, src, dst)
        pair = routes.pair_of_path
        tilted = (routes.pair_src[pair] == 2) & (routes.share < 1)
        first = np.append(True, pair[1:] != pair[:-1])
        return replace(routes, share=np.where(tilted, np.where(first, 0.75, 0.25), routes.share))

    fabric = Ring(4).build()
    lopsided(fabric, np.array([2]), np.array([0])).check()
    assert one_sender(fabric, lopsided) is None


def test_d_mod_k_on_a_wide_leaf_spine_is_followed_where_uplinks_go_round_evenly():
    assert one_sender(LeafSpine(4, 8, 4).build(), dmodk) is not None
    assert one_sender(LeafSpine(3, 8, 4).build(), dmodk) is None
    assert one_sender(LeafSpine(4, 4, 4).build(), ecmp(1)) is None
