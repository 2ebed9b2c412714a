"""Fabrics as people write them."""

import subprocess
import sys

import pytest

from ropewalk.errors import FabricError
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
    RandomRegular,
    Ring,
    Torus,
)
from ropewalk.fabric.expression import builder, fabric, nearest
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.files import to_yaml
from ropewalk.fabric.in_server import CubeMesh, PcieTree

WRITTEN = {
    "fat-tree:8": FatTree(8),
    "fat-tree:8,4": FatTree(8, 4),
    "fat-tree:8,8,2": FatTree(8, aggregations=2),
    "leaf-spine:16x8x4": LeafSpine(16, 8, 4),
    "leaf-spine:4x2x4x2": LeafSpine(4, 2, 4, cables=2),
    "bcube:4,2": BCube(4, 2),
    "torus:8x8": Torus((8, 8)),
    "torus:5": Torus((5,)),
    "mesh:4x4x2": Mesh((4, 4, 2)),
    "ring:8": Ring(8),
    "hypercube:4": Hypercube(4),
    "dragonfly:9,4,2,2": Dragonfly(9, 4, 2, 2),
    "switch:64": IdealSwitch(64),
    "random-regular:64,4": RandomRegular(64, 4),
    "random-regular:64,4,7": RandomRegular(64, 4, 7),
    "circulant:16,1,3": Circulant(16, (1, 3)),
    "dgx-a100:2": Dgx(2),
    "dgx-a100:2,4": Dgx(2, 4),
    "dgx-a100:2,8,4": Dgx(2, rails=4),
    "dgx-a100:2,8,8,1": Dgx(2, spines=1),
    "dgx-h100:4": Dgx(4, nvlink_bandwidth=450e9, bandwidth=50e9),
    "dgx-1v:8": CubeMesh(),
    "dgx-1p:4": CubeMesh(4, 20e9, twice=False),
    "pcie:8,2,2": PcieTree(8, 2),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_expression_reads_as_its_record_and_is_written_back_the_same(text):
    assert builder(text) == WRITTEN[text]
    assert WRITTEN[text].expression == text
    assert WRITTEN[text].build().name == text


def test_every_family_is_covered_and_its_example_reads():
    assert {text.partition(":")[0] for text in WRITTEN} | {"dgx"} == set(FAMILIES)
    for name, family in FAMILIES.items():
        assert family.example.startswith(f"{name}:")
        assert builder(builder(family.example).expression) == builder(family.example)


def test_plain_dgx_is_the_a100_generation():
    assert builder("dgx:2") == builder("dgx-a100:2")


def test_given_speeds_replace_those_of_the_family():
    assert builder("ring:4", bandwidth=5e9, latency=1e-6) == Ring(4, bandwidth=5e9, latency=1e-6)
    assert builder("dgx-h100:4", bandwidth=25e9) == Dgx(4, nvlink_bandwidth=450e9, bandwidth=25e9)
    assert fabric("torus:4x4", bandwidth=5e9).bandwidth.max() == 5e9


SIZED = [
    ("fat-tree", 16, "fat-tree:4"),
    ("fat-tree", 64, "fat-tree:8,4"),
    ("fat-tree", 128, "fat-tree:8"),
    ("fat-tree", 1024, "fat-tree:16"),
    ("fat-tree", 16000, "fat-tree:40"),
    ("leaf-spine", 64, "leaf-spine:8x8x8"),
    ("leaf-spine", 128, "leaf-spine:16x8x8"),
    ("leaf-spine:2to1", 128, "leaf-spine:16x4x8"),
    ("leaf-spine:4to1", 32, "leaf-spine:8x1x4"),
    ("leaf-spine:4to1", 8, "leaf-spine:2x1x4"),
    ("leaf-spine:3to2", 36, "leaf-spine:6x4x6"),
    ("fat-tree:2to1", 128, "fat-tree:8,8,2"),
    ("fat-tree:2to1", 32, "fat-tree:8,2,2"),
    ("fat-tree:1to1", 100, "fat-tree:10,4"),
    ("bcube", 64, "bcube:8,2"),
    ("bcube", 27, "bcube:3,3"),
    ("bcube", 128, "bcube:2,7"),
    ("torus", 16, "torus:4x4"),
    ("torus", 64, "torus:8x8"),
    ("torus", 27, "torus:3x3x3"),
    ("torus", 128, "torus:8x16"),
    ("torus", 8, "torus:2x4"),
    ("mesh", 6, "mesh:2x3"),
    ("ring", 7, "ring:7"),
    ("hypercube", 64, "hypercube:6"),
    ("dragonfly", 72, "dragonfly:9,4,2,2"),
    ("dragonfly", 64, "dragonfly:8,4,2,2"),
    ("switch", 100, "switch:100"),
    ("random-regular", 64, "random-regular:64,4"),
    ("circulant", 64, "circulant:64,1,8"),
    ("dgx", 16, "dgx-a100:2"),
    ("dgx-h100", 32, "dgx-h100:4"),
]


@pytest.mark.parametrize(("family", "hosts", "expected"), SIZED)
def test_bare_family_is_sized_by_its_hosts(family, hosts, expected):
    found = builder(family, hosts=hosts)
    assert found.expression == expected
    assert found.hosts == found.build().hosts == hosts


def test_sized_leaf_spine_does_not_block():
    found = builder("leaf-spine", hosts=96)
    assert isinstance(found, LeafSpine)
    assert found.oversubscription == 1.0


@pytest.mark.parametrize(("text", "ratio"), [("leaf-spine:2to1", 2), ("leaf-spine:3to2", 1.5), ("fat-tree:4to1", 4)])
def test_a_ratio_leaves_out_uplinks(text, ratio):
    found = nearest(text, 100)
    assert isinstance(found, LeafSpine | FatTree)
    assert found.oversubscription == ratio


def test_complete_expression_keeps_its_own_size():
    assert builder("bcube:5,2", hosts=64) == BCube(5, 2)


def test_fat_tree_with_a_hundred_hosts_says_which_sizes_exist():
    with pytest.raises(FabricError) as refused:
        builder("fat-tree", hosts=100)
    assert str(refused.value).startswith(
        "fat-tree with 100 hosts does not exist: the nearest sizes are 64, 125, 128 "
        "(fat-tree:8,4, fat-tree:10,5, fat-tree:8)"
    )


@pytest.mark.parametrize(
    ("family", "hosts", "sizes"),
    [
        ("bcube", 99, "81, 100, 121"),
        ("hypercube", 100, "32, 64, 128"),
        ("torus", 97, "95, 96, 98"),
        ("dgx", 21, "16, 24, 32"),
        ("dragonfly", 70, "56, 64, 72"),
        ("leaf-spine", 3, "4, 6, 8"),
    ],
)
def test_size_that_does_not_exist_lists_three_near_it(family, hosts, sizes):
    with pytest.raises(FabricError, match=f"does not exist: the nearest sizes are {sizes} "):
        builder(family, hosts=hosts)


def test_nearest_takes_the_closest_size_and_the_smaller_of_two():
    assert nearest("fat-tree", 100) == FatTree(10, 5)
    assert nearest("fat-tree", 64) == FatTree(8, 4)
    assert nearest("hypercube", 48) == Hypercube(5)
    assert nearest("fat-tree", 1) == FatTree(2)


BAD = [
    ("fatree:8", None, "no fabric family 'fatree': did you mean fat-tree"),
    ("spaghetti", 8, "no fabric family 'spaghetti': write one of fat-tree:8, leaf-spine:16x8x4"),
    ("", None, "no fabric family ''"),
    ("torus", None, "torus has no size: write torus:8x8"),
    ("torus:", None, "needs whole numbers after the colon: write torus:SIDE"),
    ("ring:9999999999999999999999", None, "has a number of more than 9 digits: write ring:HOSTS, such as ring:8"),
    ("torus:8x", None, "whole numbers after the colon"),
    ("torus:-8x8", None, "whole numbers after the colon"),
    ("torus:8.5x8", None, "whole numbers after the colon"),
    ("bcube:4", None, "has 1 number, bcube takes 2: write bcube:PORTS,LEVELS, such as bcube:4,2"),
    ("ring:4,4", None, "has 2 numbers, ring takes 1"),
    ("circulant:4", None, "takes 2 or more"),
    ("fat-tree:7", None, "give an even radix"),
    ("torus:2to1", 16, "torus has no uplinks to reduce: write torus:8x8, or one of fat-tree:2to1, leaf-spine:2to1"),
    ("leaf-spine:1to2", 16, "not oversubscribed: write leaf-spine:2to1"),
    ("leaf-spine:0to0", 16, "not oversubscribed: write leaf-spine:2to1"),
    ("fat-tree:3to2", 16, "a whole number of hosts per uplink: write fat-tree:2to1"),
    ("leaf-spine:2to1", None, "leaf-spine:2to1 has no size: write leaf-spine:16x8x4"),
    ("leaf-spine:2to1", 7, "the nearest sizes are 4, 6, 8"),
    ("switch", 1, "give 2 or more hosts"),
    ("switch", 10**9, "too large"),
    ("torus:99999x99999", None, "has 9999800001 hosts: the limit"),
    ("rack.yaml", None, "is a fabric file"),
]


@pytest.mark.parametrize(("text", "hosts", "message"), BAD)
def test_wrong_expression_is_refused_with_the_way_to_write_it(text, hosts, message):
    with pytest.raises(FabricError, match=message):
        builder(text, hosts=hosts)


def test_path_is_read_wherever_a_fabric_is_asked_for(tmp_path):
    path = tmp_path / "rack.yaml"
    path.write_text(to_yaml(Ring(4).build()))
    assert fabric(path).links == 8
    assert fabric(str(path)).builder is None
    with pytest.raises(FabricError, match="does not exist: check the path"):
        fabric(tmp_path / "other.yaml")


def test_importing_the_package_loads_nothing_heavy():
    heavy = "'numba', 'pydantic', 'networkx', 'scipy', 'yaml'"
    code = f"import sys, ropewalk.fabric, ropewalk.fabric.expression; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
