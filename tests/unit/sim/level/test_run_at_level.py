"""The same task graph at every level."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import InputError
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim.level import LevelUse, PacketOptions, run_at_level
from ropewalk.task import Sketch


def _incast(senders: int, size: float = 1e6):
    sketch = Sketch()
    for sender in range(1, senders + 1):
        forward = sketch.compute(sender, 1e-4, label="forward")
        sketch.transfer(sender, 0, size, after=[forward], label="gradient")
    fabric = IdealSwitch(senders + 1, bandwidth=5e9, latency=1e-6).build()
    hosts = np.arange(1, senders + 1)
    return sketch.graph(), shortest(fabric, hosts, np.zeros_like(hosts))


def test_each_level_adds_to_the_time_of_the_one_above():
    work = _incast(3)
    flow, wire, packet = (run_at_level(*work, LevelUse(level, "rdma-pfc")) for level in ("flow", "wire", "packet"))
    assert flow.trace.makespan < wire.trace.makespan
    assert packet.trace.makespan == pytest.approx(wire.trace.makespan, rel=1e-3)
    assert (flow.level, wire.level, packet.level) == ("flow", "wire", "packet")


def test_auto_takes_packets_for_an_incast_and_flows_for_a_single_transfer():
    one, three = (run_at_level(*_incast(senders), LevelUse("auto")) for senders in (1, 3))
    assert (one.level, three.level) == ("wire", "packet")
    assert "3 flows offer" in three.why
    assert three.packet is not None
    assert one.packet is None


def test_a_cap_counts_headers_at_either_level():
    sketch = Sketch()
    sketch.transfer(0, 1, 1e6, rate_cap=1e9)
    routes = shortest(IdealSwitch(2, bandwidth=5e9).build(), np.array([0]), np.array([1]))
    wire, packet = (run_at_level(sketch.graph(), routes, LevelUse(level, "rdma-pfc")) for level in ("wire", "packet"))
    assert wire.trace.makespan == pytest.approx(1048e-6, rel=2e-3)
    assert packet.trace.makespan == pytest.approx(wire.trace.makespan, rel=2e-3)


def test_a_packet_run_reads_as_a_trace_with_a_bottleneck():
    run = run_at_level(*_incast(3), LevelUse("packet"))
    path = run.trace.critical_path()
    assert [step.label for step in path] == ["forward", "gradient"]
    assert path[-1].bottleneck.endswith("->h0")
    assert path[0].end_s == pytest.approx(1e-4)


def test_facts_of_a_run_add_up():
    run = run_at_level(*_incast(3), LevelUse("packet", "rdma-pfc", PacketOptions(buffer_bytes=300_000)))
    facts = run.packet
    assert facts.pauses_by_kind()["hosts"] == facts.pauses > 0
    assert facts.drops == 0
    assert facts.watched == "h0"
    spans = np.diff(facts.time_s, prepend=0.0)
    assert (facts.received * spans).sum() == pytest.approx(3e6, rel=1e-9)
    assert 0 < facts.longest_queue.max() <= facts.most_queued_bytes
    assert any("pause frames received" in sentence for sentence in run.sentences())


def test_pause_frames_are_told_node_by_node():
    """Three senders stop, the receiver never does."""
    run = run_at_level(*_incast(3), LevelUse("packet", "rdma-pfc", PacketOptions(buffer_bytes=300_000)))
    told = run.packet.as_json()
    frames = {entry["node"]: entry["pauses"] for entry in told["paused_nodes"]}
    assert set(frames) == {"h1", "h2", "h3"}
    assert sum(frames.values()) == run.packet.pauses
    assert [*frames.values()] == sorted(frames.values(), reverse=True)
    hosts, switches = told["pauses_over_nodes"]
    most = max(frames.values())
    assert (hosts["kind"], hosts["nodes"], hosts["paused"], hosts["most"]) == ("hosts", 4, 3, most)
    assert hosts["median"] == np.median([0, *frames.values()])
    assert frames[hosts["most_at"]] == most
    assert switches == {
        "kind": "level-1 switches", "nodes": 1, "paused": 0, "median": 0.0, "most": 0, "most_at": None
    }  # fmt: skip
    assert f"3 of 4 paused, median {hosts['median']:,g}, most {most:,}" in run.sentences()[0]


def test_a_run_of_too_many_events_is_refused_and_an_unknown_level_too():
    with pytest.raises(InputError, match="raise --most-events"):
        run_at_level(*_incast(3), LevelUse("packet", most_events=1000))
    with pytest.raises(InputError, match="unknown level 'atoms'"):
        run_at_level(*_incast(3), LevelUse("atoms"))
