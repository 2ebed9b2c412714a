"""Facts of fabrics that no builder made, and fabrics that fall apart."""

from dataclasses import replace

import networkx
import numpy as np
import pytest

from ropewalk.errors import FabricError
from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FabricDraft,
    FatTree,
    LeafSpine,
    Mesh,
    RandomRegular,
    Torus,
)
from ropewalk.fabric.checks import facts, require_connected
from ropewalk.fabric.interchange import to_networkx

B = 12.5e9


def drawn(links, hosts=("a", "b", "c", "d"), switches=("s",), **options):
    draft = FabricDraft("drawn", list(hosts))
    draft.add_switches(list(switches), 1)
    number = {name: at for at, name in enumerate((*hosts, *switches))}
    for src, dst in links:
        draft.add_links(number[src], number[dst], B, **options)
    return draft.freeze()


def test_connected_fabric_passes_and_one_in_two_parts_names_both():
    require_connected(FatTree(4).build())
    with pytest.raises(FabricError, match="drawn: hosts a, b and hosts c, d cannot reach each other"):
        require_connected(drawn(["ab", "cd"]))


def test_one_way_streets_are_named_by_direction():
    with pytest.raises(FabricError, match="b, c, d cannot reach host a, although it reaches them"):
        require_connected(drawn(["as", "sb", "sc", "sd"], duplex=False))


def test_long_ways_round_take_few_passes():
    """A walk of a link per pass would take 125,000 of them here."""
    found = facts(Circulant(250_000, (1,)).build())
    assert (found.diameter, found.mean_distance) == (125_000, pytest.approx(250_000**2 / 4 / 249_999, rel=1e-12))


def test_facts_of_a_broken_fabric_say_so():
    found = facts(drawn(["ab", "cd"]))
    assert not found.connected
    assert found.diameter is None
    assert found.bisection == 0
    assert found.switch_ports == (0, 0)


def test_cables_count_duplex_pairs_once_and_bundles_by_their_number():
    found = facts(drawn(["as", "bs", "cs", "ds"], cables=3))
    assert found.cables == 12
    assert found.host_ports == (3, 3)
    assert found.switch_ports == (12, 12)
    assert facts(drawn(["ab", "bc", "cd", "da"], duplex=False, switches=())).cables == 4


def test_directed_ring_has_a_long_way_round():
    found = facts(drawn(["ab", "bc", "cd", "da"], duplex=False, switches=()))
    assert found.connected
    assert found.diameter == 3
    assert found.mean_distance == 2.0
    assert found.bisection == B


@pytest.mark.parametrize(
    "builder", [FatTree(4), LeafSpine(3, 2, 5), BCube(3, 3), Torus((3, 5)), Circulant(15, (1, 4)), Dgx(3), Mesh((4, 3))]
)
def test_distances_equal_those_of_networkx_with_and_without_the_shortcut_for_alike_hosts(builder):
    fabric = builder.build()
    distance = dict(networkx.all_pairs_shortest_path_length(to_networkx(fabric)))
    hosts = fabric.node_names[: fabric.hosts]
    pairs = [distance[a][b] for a in hosts for b in hosts if a != b]
    for one in (fabric, replace(fabric, builder=None)):
        assert facts(one).diameter == max(pairs)
        assert facts(one).mean_distance == pytest.approx(np.mean(pairs), rel=1e-12)


@pytest.mark.parametrize(
    "builder",
    [FatTree(4), FatTree(6), LeafSpine(4, 1, 4), LeafSpine(5, 2, 4), Torus((4, 6)), Torus((5, 5)), Mesh((6, 4))],
)
def test_search_finds_the_cut_that_the_closed_form_knows(builder):
    fabric = builder.build()
    searched = facts(replace(fabric, builder=None))
    assert searched.bisection_is_bound
    assert not facts(fabric).bisection_is_bound
    assert searched.bisection == facts(fabric).bisection == builder.bisection()


def test_dragonfly_and_dgx_bisection_is_a_bound():
    assert facts(Dragonfly(9, 4, 2, 2).build()).bisection_is_bound
    found = facts(Dgx(4).build())
    assert found.bisection == 16 * 25e9  # two servers on each side: their NICs
    assert found.host_bandwidth == (325e9, 325e9)


def test_facts_are_the_same_on_every_run():
    fabric = RandomRegular(100, 5).build()
    assert facts(fabric) == facts(RandomRegular(100, 5).build())


def test_huge_irregular_fabric_leaves_distances_open():
    found = facts(RandomRegular(8000, 3).build())
    assert found.connected
    assert found.diameter is None
    assert found.bisection is not None
