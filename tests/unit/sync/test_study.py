from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ropewalk import sync
from ropewalk.errors import InputError, PhysicsError
from ropewalk.sync import SyncQuestion

TINY = SyncQuestion(logical=("ring", "hips"), physical=("torus", "bcube:3,2"), hosts=(16,), sizes=(64_000_000,))


def test_every_combination_has_a_row_at_every_level():
    rows = sync.answer(TINY).rows
    assert {(row.logical, row.fabric, row.level) for row in rows} == {
        (logical, fabric, level)
        for logical in ("ring", "hips")
        for fabric in ("torus:4x4", "bcube:3,2")
        for level in ("closed", "flow")
    }
    assert all(row.sync_time_s == pytest.approx(row.closed_form_s, rel=1e-9) for row in rows)


def test_the_same_question_gives_the_same_rows():
    assert [row.as_json() for row in sync.answer(TINY).rows] == [row.as_json() for row in sync.answer(TINY).rows]


def test_the_hottest_link_is_the_bandwidth_term():
    (row,) = sync.answer(
        SyncQuestion(logical=("mesh",), physical=("fat-tree",), hosts=(16,), start_up_s=0.0, levels=("flow",))
    ).rows
    assert row.max_link_share == pytest.approx(2 * 15 / 16)
    assert row.sync_time_s == pytest.approx(row.max_link_share * row.size_bytes / row.bandwidth)


def test_symmetry_does_not_change_the_answer():
    plain = sync.answer(SyncQuestion(logical=("mesh",), physical=("torus",), hosts=(16,), symmetry=False)).rows
    folded = sync.answer(SyncQuestion(logical=("mesh",), physical=("torus",), hosts=(16,))).rows
    assert [row.sync_time_s for row in plain] == pytest.approx([row.sync_time_s for row in folded], rel=1e-12)


def test_the_published_torus_mesh_form_stands_beside_the_exact_one():
    row = sync.answer(SyncQuestion(logical=("mesh",), physical=("torus:4x4",), start_up_s=0.0)).rows[0]
    assert row.closed_form_s == pytest.approx(1.0 * row.size_bytes / row.bandwidth)
    assert row.paper_form_s == pytest.approx(4.0 * row.size_bytes / row.bandwidth)


def test_hop_latency_comes_on_top_of_the_start_up():
    def seconds(hop_latency_s):
        question = SyncQuestion(
            logical=("mesh",), physical=("switch",), hosts=(4,), levels=("flow",), hop_latency_s=hop_latency_s
        )
        return sync.answer(question).rows[0].sync_time_s

    assert seconds(1e-3) - seconds(0.0) == pytest.approx(2 * 2 * 1e-3)


def test_all_findings_come_at_once():
    question = SyncQuestion(
        logical=("ringo",), physical=("fat-tree", "cube"), hosts=(100,), levels=("deep",), routing=("magic",)
    )
    with pytest.raises(InputError) as caught:
        sync.answer(question)
    for part in ("'ringo'", "'deep'", "'magic'", "fat-tree with 100 hosts", "64, 125, 128", "cube"):
        assert part in str(caught.value)


def test_nearest_moves_to_a_size_that_exists_and_says_so():
    answer = sync.answer(SyncQuestion(logical=("mesh",), physical=("fat-tree",), hosts=(120,), nearest=True))
    assert {row.hosts for row in answer.rows} == {125}
    assert answer.notes == ("fat-tree has no size of 120 hosts, fat-tree:10,5 has 125",)


def test_a_result_below_the_bandwidth_bound_is_refused(monkeypatch):
    import sys

    module = sys.modules["ropewalk.sync.study"]
    monkeypatch.setattr(module, "_flow", lambda *_: (1e-6, 1))
    with pytest.raises(PhysicsError, match="below the bandwidth bound"):
        sync.answer(SyncQuestion(logical=("mesh",), physical=("switch",), hosts=(4,), levels=("flow",)))


def test_a_study_reports_its_progress():
    seen = []
    sync.answer(TINY, lambda done, total, now: seen.append((done, total)))
    assert seen[0] == (0, 8)
    assert seen[-1] == (8, 8)


def test_k_at_a_fixed_number_of_hosts_follows_the_published_forms():
    """HiPS: 2(N-1)/(kN) on BCube, (N-1)/(kN) on a torus of axes above two; mesh on BCube: 2(n-1)/n."""
    question = SyncQuestion(
        logical=("hips", "mesh"), physical=("bcube", "torus", "switch"), hosts=(64,), axes="all", start_up_s=0.0,
        levels=("closed",),
    )  # fmt: skip
    rows = {(row.physical, row.logical, row.axes): row.sync_time_s / 0.115 for row in sync.answer(question).rows}
    share = 2 * 63 / 64
    hips = {k: share / k for k in (1, 2, 3, 6)}
    assert {k: rows["bcube", "hips", k] for k in hips} == pytest.approx(hips)
    # Two links along each axis, but one where an axis has two hosts.
    assert {k: rows["torus", "hips", k] for k in hips} == pytest.approx(
        hips | {1: share / 2, 2: share / 4, 3: share / 6}
    )
    assert {k: rows["bcube", "mesh", k] for k in hips} == pytest.approx({1: share, 2: 14 / 8, 3: 6 / 4, 6: 1})
    assert rows["switch", "hips", None] == pytest.approx(share)


def test_only_those_axes_are_taken_that_were_asked_for_and_the_nearest_power_where_that_was():
    small = replace(TINY, physical=("torus",), axes=(2, 4), levels=("closed",))
    assert [row.fabric for row in sync.answer(small).rows[::2]] == ["torus:4x4", "torus:2x2x2x2"]
    near = sync.answer(replace(small, hosts=(10,), nearest=True))
    assert [row.fabric for row in near.rows[::2]] == ["torus:3x3", "torus:2x2x2x2"]
    assert near.notes == (
        "torus has no size of 10 hosts, torus:3x3 has 9", "torus has no size of 10 hosts, torus:2x2x2x2 has 16",
    )  # fmt: skip


def test_an_expression_with_its_own_size_keeps_it_beside_axes():
    found = sync.answer(replace(TINY, physical=("torus", "bcube:3,2"), axes=(1,), levels=("closed",)))
    assert {(row.fabric, row.axes) for row in found.rows} == {("torus:16", 1), ("bcube:3,2", 2)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"axes": (3,)}, "--axes 3: 16 hosts are not n^3 of a whole n: use --axes 1,2,4, or --nearest"),
        ({"axes": (99,)}, "--axes 99 is out of range"),
        ({"axes": (2,), "physical": ("fat-tree", "torus:4x4")}, "name bcube, torus or mesh"),
    ],
)
def test_axes_that_nothing_has_are_refused_with_those_that_exist(changes, expected):
    with pytest.raises(InputError, match=re.escape(expected)):
        sync.answer(replace(TINY, **changes))
