"""Networks by the names that every command takes: `fat-tree:8`, `leaf-spine:2to1`, `rails`, `rail-only`.

A name without numbers, or with a ratio alone, is the largest network that switches of a number of ports make.

>>> [complete(name, ports=64) for name in ("leaf-spine:2to1", "fat-tree:2to1", "rails", "rail-only")]
['leaf-spine:64x20x40', 'fat-tree:64,64,16', 'rails:64x32x32', 'rail-only:1x64']
>>> servers_of("fat-tree:8"), servers_of("fat-tree:64")
(4, 8)
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from fractions import Fraction

from ropewalk.errors import FabricError
from ropewalk.fabric import Builder, FatTree, LeafSpine
from ropewalk.fabric.expression import builder, has_open_size, ratio_of
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.rails import RAIL_ONLY
from ropewalk.tenancy.sizing import rearrangeable

LEAF_SPINE, FAT_TREE, RAILS = "leaf-spine", "fat-tree", "rails"
NAMES = (LEAF_SPINE, FAT_TREE, RAILS, RAIL_ONLY)
"""The networks on which jobs are placed; `rails` is what people write for a leaf-spine by rail."""
USUAL_GPUS = 8
"""Of a server, where a leaf has ports for whole servers of that size and nothing else is said."""
_WRITTEN = "leaf-spine:64x32x32, fat-tree:16, rails:64x32x32, rail-only:4x32"
_AS_CLUSTERS = {"dgx": "dgx-a100", "dgx-a100": "dgx-a100", "dgx-h100": "dgx-h100"}
"""Families whose fabrics hold the servers, and the preset that is the same."""
_RAILS = re.compile(r"[0-9]{1,9}x[0-9]{1,9}x[0-9]{1,9}(?:x[0-9]{1,9})?", re.ASCII)


def complete(text: str, ports: int, gpus_per_server: int | None = None) -> str:
    """The expression with all its numbers; sizes that are left open follow from switches with so many ports."""
    name = text.partition(":")[0]
    if name not in NAMES or (name != RAIL_ONLY and not has_open_size(text)):
        return text
    each = gpus_per_server or USUAL_GPUS
    if name == RAIL_ONLY:
        return f"{RAIL_ONLY}:1x{ports}" if text == RAIL_ONLY else text
    if text == FAT_TREE:
        return f"{FAT_TREE}:{ports // 2 * 2}"
    if text == LEAF_SPINE:
        return rearrangeable(ports).expression
    ratio = _ratio(text, name)
    if name == FAT_TREE:
        half = _parts(text, ports // 2 // int(ratio), int(ratio), each) * int(ratio)
        return FatTree(2 * half, 2 * half, half // int(ratio)).expression
    down, up = ratio.numerator, ratio.denominator
    parts = _parts(text, ports // (down + up), down, 1 if name == RAILS else each)
    if name == RAILS:
        leafs = ports // each * each
        if not leafs:
            raise FabricError(f"{text}: spines with {ports} ports do not reach {each} rails: use larger --ports")
        return f"{RAILS}:{leafs}x{parts * up}x{parts * down}"
    return LeafSpine(ports, parts * up, parts * down).expression


def servers_of(text: str) -> int:
    """GPUs of a server where nobody says: 8, or the largest smaller number that the leafs of the network hold whole."""
    name = text.partition(":")[0]
    if name == RAIL_ONLY:
        return USUAL_GPUS
    shape = shape_of(text)
    if name == RAILS:
        assert isinstance(shape, LeafSpine)
        room = shape.leafs
    else:
        room = shape.half if isinstance(shape, FatTree) else shape.hosts_per_leaf
    return next(size for size in range(USUAL_GPUS, 0, -1) if room % size == 0)


def shape_of(text: str, bandwidth: float | None = None) -> LeafSpine | FatTree:
    """The network above the servers; of rails, that of two tiers in which they are leafs."""
    name, colon, numbers = text.partition(":")
    if name not in (LEAF_SPINE, FAT_TREE, RAILS):
        raise FabricError(_refusal(text, name))
    if name == RAILS and not _RAILS.fullmatch(numbers):
        raise FabricError(
            f"{text!r} is not a rail network: write rails:LEAFSxSPINESxSERVERS[xCABLES], such as rails:64x32x32, or "
            "rails:2to1 for the largest one that is oversubscribed"
        )
    found: Builder = builder(f"{LEAF_SPINE}{colon}{numbers}" if name == RAILS else text, bandwidth)
    assert isinstance(found, LeafSpine | FatTree)
    return found


def _parts(text: str, most: int, down: int, each: int) -> int:
    """How often the ratio fits into the ports of a switch: with whole servers below every leaf if that is possible."""
    if most < 1:
        raise FabricError(f"{text}: switches have too few ports for this ratio: use larger --ports, or a smaller ratio")
    return next((parts for parts in range(most, 0, -1) if parts * down % each == 0), most)


def _ratio(text: str, name: str) -> Fraction:
    """GPUs per uplink of a leaf."""
    if name != RAILS:
        ratio = ratio_of(text)
        if name == FAT_TREE and ratio.denominator != 1:
            raise FabricError(f"{text}: a fat-tree has a whole number of GPUs per uplink: write {_rounded(ratio)}")
        return ratio
    try:
        return ratio_of(LEAF_SPINE + text.removeprefix(RAILS))
    except FabricError as problem:
        raise FabricError(str(problem).replace(LEAF_SPINE, RAILS)) from problem


def _rounded(ratio: Fraction) -> str:
    return f"{FAT_TREE}:{math.ceil(ratio)}to1"


def _refusal(text: str, name: str) -> str:
    if name in _AS_CLUSTERS:
        servers = text.partition(":")[2].partition(",")[0] or "4"
        return (
            f"{text} holds the servers themselves: use --cluster {_AS_CLUSTERS[name]}:{servers}, or one of {_WRITTEN}"
        )
    if name in FAMILIES:
        return f"{text} has no leafs below which jobs are placed: write one of {_WRITTEN}, or read a topology file"
    near = get_close_matches(name, NAMES, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no network {name!r} of leafs: {hint}write one of {_WRITTEN}, or the path of a topology file"
