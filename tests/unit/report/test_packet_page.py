"""Pages of packet-level runs: levels side by side, throughput, queues and pauses."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk import sync
from ropewalk.fabric import IdealSwitch
from ropewalk.report import sync_page, trace_page
from ropewalk.report.combinations import combinations
from ropewalk.report.sync_levels import packet_charts
from ropewalk.routing import shortest
from ropewalk.sim.level import LevelUse, PacketOptions, run_at_level
from ropewalk.sync import SyncQuestion
from ropewalk.task import Sketch


@pytest.fixture(scope="module")
def answer():
    return sync.answer(
        SyncQuestion(
            logical=("ps", "ring"),
            physical=("switch:4",),
            sizes=(2_000_000,),
            start_up_s=0.0,
            hop_latency_s=1e-6,
            levels=("closed", "flow", "wire", "packet"),
            transports=("rdma-pfc", "tcp"),
            packet=PacketOptions(buffer_bytes=500_000),
        )
    )


def test_the_page_draws_levels_throughput_queues_and_pauses(answer, read_page):
    page = read_page(sync_page(answer))
    assert {"levels", "throughput", "queues", "pauses"} <= set(page.figure_keys)
    for words in ("Theory, flows and packets", "Throughput over time at one host", "Pause frames by kind of node"):
        assert words in page.text


def test_marks_stand_at_the_times_of_the_rows_over_the_flow_level(answer, read_page):
    page = read_page(sync_page(answer))
    (marks,) = page.traces("levels", "packets, rdma-pfc")
    packets = [row.sync_time_s for row in answer.rows if (row.level, row.transport) == ("packet", "rdma-pfc")]
    flows = [row.sync_time_s for row in answer.rows if row.level == "flow"]
    assert marks["x"] == pytest.approx(np.divide(packets, flows), rel=1e-5)
    assert page.traces("levels", "flow")[0]["x"] == [1.0] * 4  # beside each transport


def test_runs_of_one_collective_that_differ_much_in_length_are_shown_apart_under_names_of_their_own():
    """With short queues TCP waits for a timeout: it gets an axis of its own, and the button says whose it is."""
    answer = sync.answer(
        SyncQuestion(
            logical=("ps",), physical=("switch:8",), sizes=(40_000,), start_up_s=0.0, hop_latency_s=1e-6,
            levels=("packet",), transports=("newreno", "rdma"), packet=PacketOptions(queue_bytes=6_000),
        )
    )  # fmt: skip
    slow, quick = (row.sync_time_s for row in answer.rows)
    assert slow > 4 * quick
    _, _, throughput = packet_charts(combinations(answer.rows))[0]
    assert [view.label for view in throughput.views] == [
        "switch:8 · parameter server, newreno", "switch:8 · parameter server, rdma",
    ]  # fmt: skip


def test_the_curve_of_the_server_carries_what_it_received(answer, read_page):
    # The server of four receives three pushes of two megabytes; then it only sends.
    page = read_page(sync_page(answer))
    curves = [
        trace for view in page.figures("throughput") for trace in view["data"] if trace["name"].startswith("parameter")
    ]
    row = next(row for row in answer.rows if (row.logical, row.level, row.transport) == ("ps", "packet", "rdma-pfc"))
    spans = np.diff(row.packet.time_s, prepend=0.0)
    assert len(curves) == 2
    assert "Gbps" in curves[0]["hovertemplate"]
    assert (np.array(curves[0]["y"][:-1]) * 1e9 / 8 * spans).sum() == pytest.approx(6e6, rel=1e-4)


def test_of_a_sweep_the_largest_is_shown_over_time():
    answer = sync.answer(
        SyncQuestion(
            logical=("ring",), physical=("switch:4",), sizes=(40_000, 400_000), start_up_s=0.0, hop_latency_s=1e-6,
            levels=("packet",),
        )
    )  # fmt: skip
    _, note, throughput = packet_charts(combinations(answer.rows))[0]
    assert len(throughput.views) == 1
    assert "Shown for 4 hosts, 400 kB" in note.replace("\u00a0", " ")


def test_pauses_are_cut_by_the_kind_of_node(answer, read_page):
    page = read_page(sync_page(answer))
    row = next(row for row in answer.rows if (row.logical, row.level, row.transport) == ("ps", "packet", "rdma-pfc"))
    (hosts,) = page.traces("pauses", "hosts")
    assert row.packet.pauses > 0
    assert row.packet.pauses in hosts["x"]
    assert "Most pause frames: parameter server on switch:4" in page.text


def test_every_node_stands_where_its_pause_frames_are(answer, read_page):
    page = read_page(sync_page(answer))
    row = next(row for row in answer.rows if (row.logical, row.level, row.transport) == ("ps", "packet", "rdma-pfc"))
    (hosts,) = page.traces("pauses-of-nodes", "hosts")
    received = row.packet.node_pauses[np.array(row.packet.node_kind) == "hosts"]
    place = next(number for number, told in enumerate(hosts["customdata"]) if told.startswith("parameter server, rdma"))
    line = hosts["y"][place]
    assert sorted(x for x, y in zip(hosts["x"], hosts["y"], strict=True) if y == line) == sorted(set(received.tolist()))
    assert "0 each at h0" in " ".join(hosts["customdata"])


def test_the_same_study_gives_the_same_page(answer):
    assert sync_page(answer) == sync_page(answer)


def test_a_page_of_a_run_tells_what_packets_met(read_page):
    sketch = Sketch()
    for host in (1, 2, 3):
        sketch.transfer(host, 0, 1e6)
    routes = shortest(IdealSwitch(4, latency=1e-6).build(), np.array([1, 2, 3]), np.zeros(3, int))
    run = run_at_level(sketch.graph(), routes, LevelUse("packet", "rdma-pfc", PacketOptions(buffer_bytes=300_000)))
    page = read_page(trace_page(run.trace, run))
    assert {"packet-throughput", "packet-queues", "packet-pauses", "packet-nodes"} <= set(page.figure_keys)
    assert "Throughput at host h0" in page.text
    plain = read_page(trace_page(run.trace))
    assert "packet-queues" not in plain.figure_keys
