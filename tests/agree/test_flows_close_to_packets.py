"""When flows are enough: with headers they are as good as packets wherever `auto` says so, over collectives, fabrics,
message sizes and routings. What is beyond that is in docs/packet.md."""

from __future__ import annotations

from dataclasses import replace

import pytest
from random_transfers import random_transfers

from packet_level import flows_against_packets_16_hosts, hashed_paths_on_fat_tree_16_hosts
from ropewalk import sync
from ropewalk.fabric.expression import fabric as read_fabric
from ropewalk.routing import router_for
from ropewalk.sim.level import LevelUse, PacketOptions, run_at_level
from ropewalk.sync import SyncQuestion, SyncStudy
from ropewalk.sync.question import LEVELS

ENOUGH = 0.025
"""What flows with headers may be off where `auto` is content with them."""


def _times(answer: SyncStudy) -> dict[tuple[object, ...], dict[str, float]]:
    found: dict[tuple[object, ...], dict[str, float]] = {}
    for row in answer.rows:
        found.setdefault((row.fabric, row.routing, row.logical, row.size_bytes), {})[row.level] = row.sync_time_s
    return found


def _study(question: SyncQuestion, **changes: object) -> SyncStudy:
    return sync.answer(replace(question, **changes))


def _compared(question: SyncQuestion, **changes: object):
    """Times by level of every combination, and the level that `auto` takes for it."""
    levels = _study(question, **changes, levels=("flow", "wire", "packet"))
    auto = _study(question, **changes, levels=("auto",))
    chosen = {(row.fabric, row.routing, row.logical, row.size_bytes): row.level for row in auto.rows}
    return _times(levels), chosen


@pytest.fixture(scope="module")
def compared():
    return _compared(flows_against_packets_16_hosts(), sizes=(16_000, 1_000_000))


def test_flows_with_headers_are_enough_wherever_auto_says_so(compared):
    times, chosen = compared
    trusted = {key: times[key] for key, level in chosen.items() if level == "wire"}
    assert len(trusted) >= 10
    for key, by_level in trusted.items():
        assert by_level["wire"] == pytest.approx(by_level["packet"], rel=ENOUGH), key


def test_they_are_enough_at_other_speeds_latencies_and_packet_sizes_too():
    times, chosen = _compared(
        flows_against_packets_16_hosts(), logical=("mesh", "ring", "halving-doubling", "hips"),
        physical=("leaf-spine", "bcube:4,2", "torus:4x4"), hosts=(16,), sizes=(2_000_000,), bandwidths=(12.5e9,),
        start_up_s=10e-6, hop_latency_s=0.0, packet=PacketOptions(payload_bytes=4096),
    )  # fmt: skip
    trusted = {key: times[key] for key, level in chosen.items() if level == "wire"}
    assert len(trusted) >= 4
    for key, by_level in trusted.items():
        assert by_level["wire"] == pytest.approx(by_level["packet"], rel=ENOUGH), key


@pytest.mark.parametrize("name", ["switch:8", "fat-tree:4", "torus:4x4", "bcube:4,2"])
def test_they_are_enough_for_task_graphs_of_any_shape_wherever_auto_says_so(name):
    """Transfers of 0.1 to 3 MB between random hosts, each after up to two others."""
    fabric = read_fabric(name, bandwidth=5e9, latency=1e-6)
    trusted = 0
    for seed in range(24):
        graph = random_transfers(fabric.hosts, seed)
        routes = router_for(fabric).make(0)(fabric, graph.place, graph.peer)
        auto = run_at_level(graph, routes, LevelUse("auto"))
        if auto.level == "wire":
            packets = run_at_level(graph, routes, LevelUse("packet"))
            assert auto.trace.makespan == pytest.approx(packets.trace.makespan, rel=ENOUGH), (name, seed)
            trusted += 1
    assert trusted >= 2


def test_flows_without_headers_are_five_to_thirty_percent_short(compared):
    times, _ = compared
    off = [by_level["flow"] / by_level["packet"] - 1 for by_level in times.values()]
    assert max(off) < 0
    assert min(off) > -0.35


def test_auto_takes_packets_where_headers_alone_do_not_explain_them(compared):
    times, chosen = compared
    far = [key for key, by_level in times.items() if abs(by_level["wire"] / by_level["packet"] - 1) > ENOUGH]
    assert far
    assert {chosen[key] for key in far} == {"packet"}


def test_pauses_alone_do_not_make_congested_links_slower():
    """Incast and hashed paths with priority flow control only: links that everybody waits for stay full."""
    question = hashed_paths_on_fat_tree_16_hosts(1_000_000)
    answer = _study(question, routing=("murmur",), logical=("ps", "mesh", "hips"), transports=("rdma-pfc",))
    for key, by_level in _times(answer).items():
        assert by_level["wire"] == pytest.approx(by_level["packet"], rel=ENOUGH), key


def test_every_level_of_a_study_is_known_to_the_command_line():
    assert LEVELS == ("closed", "flow", "wire", "packet", "auto")
