"""Chrome traces: well-formed events, nothing overlapping on a thread, every task there or its absence noted."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flow_worlds import worlds
from hypothesis import given, settings

from ropewalk.export.chrome import MARKS, NETWORK, chrome_trace
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import Routes, shortest
from ropewalk.sim.simulate import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import Sketch, TaskGraph, TaskKind

Event = dict[str, Any]


def events_of(trace: Trace, **options: int) -> list[Event]:
    return list(json.loads(chrome_trace(trace, **options))["traceEvents"])


def slices(events: list[Event]) -> list[Event]:
    return [event for event in events if event["ph"] == "X"]


def star_trace(record_rates: bool = False) -> Trace:
    sketch = Sketch()
    forward = sketch.compute(1, 0.5, label="forward")
    sketch.compute(1, 0.25, after=[forward], stream=2, label="backward")
    sketch.transfer(0, 1, 8.0, label="slow")
    sketch.transfer(0, 2, 4.0, label="short")
    last = sketch.transfer(0, 2, 8.0, start_up=1.5, label="late")
    sketch.marker(after=[last], label="done")
    graph = sketch.graph()
    transfer = graph.kind == TaskKind.TRANSFER
    routes = shortest(IdealSwitch(3, bandwidth=8.0).build(), graph.place[transfer], graph.peer[transfer])
    return simulate(graph, routes, record_rates=record_rates)


def test_tasks_stand_on_their_streams_and_hosts_in_microseconds() -> None:
    events = events_of(star_trace())
    shown = {event["name"]: (event["pid"], event["tid"], event["ts"], event["dur"]) for event in slices(events)}
    # slow and short share 8 bytes/s: short ends after 1 s, slow has 4 bytes left and ends at 1.5 s.
    assert shown == {
        "forward": (2, 0, 0.0, 500000.0),
        "backward": (2, 2, 500000.0, 250000.0),
        "slow": (NETWORK, 0, 0.0, 1500000.0),
        "short": (NETWORK, 1, 0.0, 1000000.0),
        "late": (NETWORK, 2, 0.0, 2500000.0),
    }
    (marker,) = (event for event in events if event["ph"] == "i")
    assert (marker["name"], marker["pid"], marker["ts"]) == ("done", MARKS, 2500000.0)


def test_processes_and_threads_have_the_names_people_know() -> None:
    named = [event for event in events_of(star_trace()) if event["ph"] == "M"]
    processes = {event["pid"]: event["args"]["name"] for event in named if event["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in named if e["name"] == "thread_name"}
    assert processes == {2: "gpu 1", NETWORK: "network", MARKS: "markers"}
    assert threads == {
        (2, 0): "stream 0",
        (2, 2): "stream 2",
        (NETWORK, 0): "h0",
        (NETWORK, 1): "h0 (2)",
        (NETWORK, 2): "h0 (3)",
        (MARKS, 0): "markers",
    }


def test_a_transfer_says_what_held_it_back() -> None:
    late = next(event for event in slices(events_of(star_trace())) if event["name"] == "late")
    assert late["cat"] == "transfer"
    assert late["args"] == {"task": 4, "bytes": 8.0, "to": "h2", "bottleneck": "h0->switch", "priority": 0}


def test_a_lane_is_used_again_when_it_is_free() -> None:
    sketch = Sketch()
    first = sketch.transfer(0, 1, 8.0)
    sketch.transfer(0, 1, 8.0, after=[first])
    graph = sketch.graph()
    routes = shortest(IdealSwitch(2, bandwidth=8.0).build(), graph.place, graph.peer)
    assert [event["tid"] for event in slices(events_of(simulate(graph, routes)))] == [0, 0]


def test_the_hot_links_have_a_track_where_rates_were_recorded() -> None:
    counters = [event for event in events_of(star_trace(record_rates=True)) if event["ph"] == "C"]
    track = [(event["ts"], event["args"]["utilisation"]) for event in counters if event["name"] == "h0->switch %"]
    # Full while slow and short share it, full while slow is alone, and full again for late, which comes right then.
    assert track[0] == (0.0, 100.0)
    assert track[-1] == (2500000.0, 0.0)
    into_h1 = [(event["ts"], event["args"]["utilisation"]) for event in counters if event["name"] == "switch->h1 %"]
    assert into_h1 == [(0.0, 50.0), (1000000.0, 100.0), (1500000.0, 0.0)]
    assert not [event for event in events_of(star_trace()) if event["ph"] == "C"]


def test_a_long_trace_is_cut_and_says_so() -> None:
    document = json.loads(chrome_trace(star_trace(record_rates=True), most=2))
    assert [event["name"] for event in slices(document["traceEvents"])] == ["forward", "slow"]
    note = "only the 2 earliest tasks of 6 are shown"
    assert document["otherData"]["note"] == note
    assert document["otherData"]["tasks"] == 6
    assert [event["name"] for event in document["traceEvents"] if event["ph"] == "i"] == [note]
    assert max(event["ts"] for event in document["traceEvents"] if event["ph"] == "C") <= 1500000.0
    assert "note" not in json.loads(chrome_trace(star_trace()))["otherData"]


def test_an_empty_graph_is_an_empty_trace() -> None:
    routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    trace = Trace(Sketch().graph(), routes, np.zeros(0), np.zeros(0), np.zeros(0, np.int32), 0, 0)
    assert events_of(trace) == []


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_every_task_is_one_well_formed_event_and_nothing_overlaps(world: tuple[TaskGraph, Routes]) -> None:
    graph, routes = world
    trace = simulate(graph, routes, symmetry=False, record_rates=True)
    text = chrome_trace(trace)
    assert text == chrome_trace(trace)
    events = json.loads(text)["traceEvents"]
    timed = [event for event in events if event["ph"] in "Xi"]
    assert sorted(event["args"]["task"] for event in timed) == list(range(graph.tasks))
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        assert event["ph"] in "XiCM"
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert event["ph"] == "M" or event["ts"] >= 0
        if event["ph"] == "C":
            assert 0 <= event["args"]["utilisation"] <= 100.0001
        if event["ph"] == "X":
            task = event["args"]["task"]
            assert event["ts"] == pytest.approx(trace.start[task] * 1e6, abs=1e-3)
            assert event["dur"] == pytest.approx((trace.end[task] - trace.start[task]) * 1e6, abs=2e-3)
            begin = round(event["ts"] * 1000)
            row = threads.setdefault((event["pid"], event["tid"]), [])
            row.append((begin, begin + round(event["dur"] * 1000)))
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert named >= threads.keys()
    for row in threads.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(row)))
