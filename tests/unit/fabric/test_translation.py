"""Translations: which fabrics look alike from every host, and what ends that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    Ring,
    Torus,
)
from ropewalk.fabric.translation import translations

ALIKE = [
    IdealSwitch(7), Ring(2), Ring(5), Torus((3, 4)), Torus((4, 2, 1)), Hypercube(4), BCube(3, 2), BCube(2, 3),
    FatTree(4), FatTree(6, 4), FatTree(8, 2, 2),
    LeafSpine(4, 4, 4), LeafSpine(4, 2, 4), LeafSpine(3, 2, 4, cables=2), LeafSpine(4, 8, 4),
    Dgx(3), Dgx(1, 4), Dgx(4, 1), Dgx(2, 4, rails=2), Dgx(4, 4, spines=2), Dgx(2, 6, rails=3, spines=4),
    Circulant(7, (1, 3)), Circulant(8, (1, 2, 4)), Circulant(2, (1,)),
]  # fmt: skip


@pytest.mark.parametrize("builder", ALIKE, ids=lambda builder: builder.expression)
def test_every_translation_carries_links_to_links_between_the_moved_ends(builder):
    fabric = builder.build()
    moves = translations(fabric)
    assert moves is not None
    host, link = np.arange(fabric.hosts), np.arange(fabric.links, dtype=np.int32)
    for to in range(fabric.hosts):
        back = moves.link_moved_back(link, to)
        assert sorted(back) == list(link)
        assert moves.moved(moves.moved_back(host, to), to).tolist() == list(host)
        assert moves.moved_back(to, to) == 0
        for end in (fabric.link_src, fabric.link_dst):
            at_host = end < fabric.hosts
            assert np.array_equal(end[back][at_host], moves.moved_back(end[at_host], to))
            # Links that share a switch still share one.
            assert len(set(zip(end.tolist(), end[back].tolist(), strict=True))) == len(set(end.tolist()))


@pytest.mark.parametrize(
    "builder",
    [Mesh((3, 3)), Dragonfly(3, 2, 1, 1), LeafSpine(3, 8, 4), LeafSpine(4, 3, 4)],
    ids=lambda builder: builder.expression,
)
def test_a_rim_an_unknown_family_and_uplinks_that_do_not_go_round_evenly_have_no_translations(builder):
    assert translations(builder.build()) is None


def test_a_fabric_without_its_builder_has_no_known_translations():
    assert translations(replace(Torus((3, 3)).build(), builder=None)) is None


@pytest.mark.parametrize("column", ["bandwidth", "latency", "cables"])
@pytest.mark.parametrize("builder", ALIKE, ids=lambda builder: builder.expression)
def test_one_link_unlike_the_others_ends_the_symmetry(builder, column):
    fabric = builder.build()
    values = getattr(fabric, column).copy()
    values[-1] += 1
    assert translations(replace(fabric, **{column: values})) is None


def test_one_cable_plugged_in_elsewhere_ends_the_symmetry():
    fabric = FatTree(4).build()
    ends = fabric.link_src.copy(), fabric.link_dst.copy()
    # Two cables of one aggregation switch change cores with those of another one.
    for there, here in ((-2, -8), (-1, -7)):
        for end in ends:
            other = end >= fabric.hosts + 16
            if other[there]:
                end[there], end[here] = end[here], end[there]
    assert translations(replace(fabric, link_src=ends[0], link_dst=ends[1])) is None
