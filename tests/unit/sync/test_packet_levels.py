"""The study on the packet level: rows, transports, choices, and what is refused."""

from __future__ import annotations

import pytest

from ropewalk import sync
from ropewalk.errors import InputError
from ropewalk.sim.level import PacketOptions
from ropewalk.sync import SyncQuestion

TINY = SyncQuestion(
    logical=("ps", "hips"), physical=("bcube:2,2",), sizes=(200_000,), bandwidths=(5e9,), start_up_s=0.0,
    hop_latency_s=1e-6, levels=("closed", "flow", "wire", "packet"), transports=("rdma", "tcp"),
)  # fmt: skip


@pytest.fixture(scope="module")
def answer():
    return sync.answer(TINY)


def test_levels_that_know_packets_have_a_row_for_each_transport(answer):
    found = [(row.level, row.transport) for row in answer.rows if row.logical == "hips"]
    assert found == [
        ("closed", None), ("flow", None), ("wire", "rdma"), ("wire", "tcp"), ("packet", "rdma"), ("packet", "tcp"),
    ]  # fmt: skip


def test_packets_take_longer_than_flows_and_headers_explain_it_where_nobody_queues(answer):
    hips = {(row.level, row.transport): row.sync_time_s for row in answer.rows if row.logical == "hips"}
    assert hips["flow", None] < hips["wire", "rdma"]
    assert hips["packet", "rdma"] == pytest.approx(hips["wire", "rdma"], rel=0.01)


def test_rows_tell_what_packets_met(answer):
    row = next(row for row in answer.rows if (row.logical, row.level, row.transport) == ("ps", "packet", "rdma"))
    told = row.as_json()["packet"]
    assert told["transport"] == "rdma"
    assert told["events"] > 0
    assert set(told["pauses"]) == {"hosts", "level-1 switches", "level-2 switches"}
    assert row.packet.watched == answer.fabrics[0].node_names[0]


def test_the_same_question_gives_the_same_packets(answer):
    again = sync.answer(TINY)
    assert [row.as_json() for row in answer.rows] == [row.as_json() for row in again.rows]


def test_auto_says_which_level_it_chose_and_why():
    answer = sync.answer(
        SyncQuestion(
            logical=("ps", "ring"),
            physical=("switch:4",),
            sizes=(400_000,),
            start_up_s=0.0,
            levels=("auto",),
        )
    )
    assert [(row.logical, row.level) for row in answer.rows] == [("ps", "packet"), ("ring", "wire")]
    assert any("3 flows offer" in note for note in answer.notes)
    assert all(row.chosen_because for row in answer.rows)


def test_progress_counts_the_rows_of_all_transports():
    seen = []
    sync.answer(TINY, lambda done, total, now: seen.append((done, total)))
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)


def test_runs_that_would_take_hours_are_refused_before_anything_runs():
    seen = []
    with pytest.raises(InputError, match=r"1 of 1 combinations[\s\S]*mesh on fat-tree:8[\s\S]*--most-events"):
        sync.answer(
            SyncQuestion(logical=("mesh",), physical=("fat-tree:8",), levels=("packet",)),
            lambda *now: seen.append(now),
        )
    assert not seen


def test_bad_packet_settings_are_found_with_all_else():
    with pytest.raises(InputError) as caught:
        sync.answer(
            SyncQuestion(
                logical=("ringo",),
                physical=("switch:4",),
                levels=("packet",),
                transports=("rdma", "quic"),
                packet=PacketOptions(ecn=(2e5, 1e5, 0.1), payload_bytes=0),
            )
        )
    for part in ("'ringo'", "'quic'", "above Kmax", "payload of a packet is 0 bytes"):
        assert part in str(caught.value)


def test_too_many_hosts_for_packets_are_sent_to_flows():
    with pytest.raises(InputError, match="too many for packets: use --level flow"):
        sync.answer(SyncQuestion(logical=("ring",), physical=("torus:128x64",), levels=("packet",)))
