"""Networks by name, sized by the ports of switches where the name leaves that open."""

import pytest

from ropewalk.errors import FabricError
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.plant_names import complete, servers_of


@pytest.mark.parametrize("ports", [8, 16, 36, 64])
@pytest.mark.parametrize("name", ["leaf-spine", "fat-tree", "leaf-spine:2to1", "leaf-spine:3to1", "fat-tree:2to1"])
def test_a_network_without_sizes_fits_the_ports_of_its_switches(name, ports):
    text = complete(name, ports)
    made = plant(text, servers_of(text))
    ratio = int(name.partition(":")[2].removesuffix("to1") or 1)
    up = int(made.cables.sum(axis=1).max())
    assert int(made.gpus_per_leaf.max()) == ratio * up
    for used in (
        made.gpus_per_leaf.max() + up,
        made.cables.sum(axis=0).max() + made.core_cables.sum(axis=1).max(initial=0),
    ):
        assert used <= ports
    assert made.core_cables.sum(axis=0).max(initial=0) <= ports


@pytest.mark.parametrize(("name", "up"), [("rails", 32), ("rails:2to1", 21), ("rails:3to1", 16)])
def test_rails_without_sizes_are_whole_units(name, up):
    made = plant(complete(name, 64), 8)
    assert made.rails == 8
    assert made.leafs == 64
    assert made.spines == up
    assert up + int(made.servers_per_leaf.max()) <= 64


def test_rail_only_without_sizes_is_one_unit():
    made = plant(complete("rail-only", 32), 8)
    assert (made.units, made.servers, made.spines) == (1, 32, 0)


def test_an_oversubscribed_leaf_holds_whole_servers_where_it_can():
    assert complete("leaf-spine:2to1", 64) == "leaf-spine:64x20x40"
    assert complete("leaf-spine:2to1", 64, gpus_per_server=6) == "leaf-spine:64x21x42"


@pytest.mark.parametrize(
    ("text", "size"),
    [("fat-tree:8", 4), ("fat-tree:16", 8), ("leaf-spine:4x4x12", 6), ("leaf-spine:4x4x7", 7), ("leaf-spine:4x4x11", 1),
     ("rails:12x4x4", 6), ("rail-only:2x8", 8)],
)  # fmt: skip
def test_servers_have_eight_gpus_or_as_many_as_leafs_hold_whole(text, size):
    assert servers_of(text) == size
    assert plant(text, size).gpus_per_server == size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fat-treee:8", "there is no network 'fat-treee' of leafs: did you mean fat-tree?"),
        ("railz", "did you mean rails?"),
        ("torus:4x4", "torus:4x4 has no leafs below which jobs are placed"),
        ("dgx-h100:4", "use --cluster dgx-h100:4, or one of leaf-spine:64x32x32"),
        ("dgx:2", "use --cluster dgx-a100:2"),
        ("rails:8", "'rails:8' is not a rail network: write rails:LEAFSxSPINESxSERVERS"),
        ("rails:1to2", "write rails:2to1"),
        ("fat-tree:3to2", "a whole number of GPUs per uplink: write fat-tree:2to1"),
        ("leaf-spine:100to1", "use larger --ports"),
        ("rail-only:4", "write rail-only:UNITSxSERVERS"),
    ],
)
def test_other_names_are_refused_with_those_that_are_meant(text, said):
    with pytest.raises(FabricError) as refused:
        plant(complete(text, 64), 8)
    assert said in str(refused.value)
