"""Caps that make DistributedDataParallel close its buckets where a plan ends its groups."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.errors import StrategyError
from ropewalk.export.ddp import buckets_of_caps, ddp_settings
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.tensors import from_layers


def world(sizes):
    count = len(sizes)
    return from_layers(
        sizes, backward_s=[1] * count, forward_s=[1] * count, names=tuple(f"p{at}" for at in range(count))
    )


def test_the_tensor_that_reaches_the_cap_closes_the_bucket():
    assert buckets_of_caps([12, 8, 8, 4], [4, 16]) == [[0], [1, 2], [3]]
    assert buckets_of_caps([4, 4, 4], [100]) == [[0, 1, 2]]


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=12), st.data())
def test_exact_caps_make_any_groups_of_neighbours(sizes, data):
    tensors = world(sizes)
    inner = data.draw(st.sets(st.integers(1, len(sizes)))) | {len(sizes)}
    groups = Groups.cut(tensors.in_ready_order, sorted(inner))
    settings = ddp_settings(tensors, groups)
    assert settings.buckets == tuple(tuple(f"p{at}" for at in group) for group in groups.members)
    # What PyTorch makes of the keywords: caps in MiB, turned into whole bytes.
    assert [int(cap * 1024 * 1024) for cap in settings.keywords["bucket_cap_mb_list"]] == list(settings.caps_bytes)


def test_files_hold_the_keywords_and_the_buckets(tmp_path):
    tensors = world([8, 4, 4])
    settings = ddp_settings(tensors, Groups.cut(tensors.in_ready_order, [2, 3]))
    settings.write(tmp_path / "ddp.json")
    read = json.loads((tmp_path / "ddp.json").read_text())
    assert read["keywords"] == settings.keywords
    assert read["buckets"] == [["p2", "p1"], ["p0"]]
    settings.write(tmp_path / "ddp.py")
    names: dict[str, object] = {}
    exec((tmp_path / "ddp.py").read_text(), names)
    assert (names["KEYWORDS"], names["BUCKETS"]) == (settings.keywords, settings.buckets)


@pytest.mark.parametrize(
    ("sizes", "members", "text"),
    [
        ([4, 4, 4], ((0,), (1, 2)), "groups do not follow the order in which gradients are ready"),
        ([4, 4, 4], ((1, 0),), "2 tensors are grouped, but there are 3"),
        ([0, 4, 4], ((2, 1, 0),), "a tensor has no bytes or a part of one"),
    ],
)
def test_groups_that_caps_cannot_make_are_refused(sizes, members, text):
    with pytest.raises(StrategyError, match=text):
        ddp_settings(world(sizes), Groups(members))


def test_caps_that_cannot_be_filled_are_refused():
    with pytest.raises(StrategyError, match="cannot be filled"):
        buckets_of_caps([1], [])
