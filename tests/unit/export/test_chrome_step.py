"""A step in the trace-event format: streams with names, collectives on all members, links as counters."""

import json
from itertools import pairwise

import pytest
from tiny_steps import BANDWIDTH, pipeline_step, run_step

from ropewalk.export.chrome import NETWORK
from ropewalk.export.chrome_step import chrome_step_trace
from ropewalk.task.step import Act, StepSketch


def small_run(record_rates=False):
    sketch = StepSketch(2, ("compute", "tensor", "pipeline"))
    done = [sketch.compute(rank, 1.0, label="forward") for rank in range(2)]
    met = sketch.collective(Act.ALL_REDUCE, [0, 1], 2 * BANDWIDTH, after=done, stream=1, label="sum")
    sketch.send(0, 1, 1 * BANDWIDTH, after=[met], stream=2, label="there")
    sketch.send(1, 0, 1 * BANDWIDTH, after=[met], stream=2, label="back")
    return run_step(sketch.step(), record_rates=record_rates)


def document(run, **options):
    return json.loads(chrome_step_trace(run, **options))


def named(events, what):
    return {
        (event["pid"], event.get("tid")): event["args"]["name"] for event in events if event["name"] == f"{what}_name"
    }


def test_ranks_are_processes_and_their_streams_threads_with_names():
    events = document(small_run())["traceEvents"]
    assert named(events, "process") == {(1, None): "gpu 0", (2, None): "gpu 1", (NETWORK, None): "network"}
    streams = {name for (pid, _), name in named(events, "thread").items() if pid == 1}
    assert streams == {"compute", "tensor", "pipeline", "pipeline (2)"}
    hosts = {name for (pid, _), name in named(events, "thread").items() if pid == NETWORK}
    assert hosts == {"h0 sends", "h1 sends"}


def test_a_collective_stands_on_the_stream_of_every_member():
    events = document(small_run())["traceEvents"]
    threads = named(events, "thread")
    sums = [event for event in events if event["name"] == "sum" and event["pid"] != NETWORK]
    assert [(event["pid"], threads[event["pid"], event["tid"]]) for event in sums] == [(1, "tensor"), (2, "tensor")]
    assert all((event["ts"], event["dur"]) == (1e6, 2e6) for event in sums)
    assert sums[0]["args"] == {"operation": 2, "act": "all_reduce", "bytes": 2 * BANDWIDTH, "ranks": 2}


def test_transfers_have_the_name_of_the_operation_they_belong_to():
    events = document(small_run())["traceEvents"]
    sent = [event["name"] for event in events if event["ph"] == "X" and event["pid"] == NETWORK]
    assert sorted(sent) == ["back", "sum", "sum", "there"]


@pytest.mark.parametrize("record_rates", [True, False])
def test_hot_links_have_a_track_with_or_without_recorded_rates(record_rates):
    found = document(small_run(record_rates))
    track = [
        (event["ts"], event["args"]["utilisation"])
        for event in found["traceEvents"]
        if event["ph"] == "C" and event["name"] == "h0->switch %"
    ]
    assert track[0] == (1e6, 100.0)
    assert track[-1] == (4e6, 0.0)
    assert found["otherData"]["utilisation"].startswith("exact" if record_rates else "from the mean")


def test_names_come_first_and_events_by_time_without_overlap_on_a_thread():
    events = document(run_step(pipeline_step(stages=3, data=2)))["traceEvents"]
    timed = [event for event in events if event["ph"] != "M"]
    assert events[: len(events) - len(timed)] == [event for event in events if event["ph"] == "M"]
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    threads = named(events, "thread")
    rows = {}
    for event in timed:
        assert event["ph"] in "XC"
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in threads
            rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in rows.values():
        assert all(round((a["ts"] + a["dur"]) * 1e3) <= round(b["ts"] * 1e3) for a, b in pairwise(row))


def test_every_operation_that_lasts_is_there_once_for_each_of_its_ranks():
    run = run_step(pipeline_step())
    events = document(run)["traceEvents"]
    shown = sorted(
        (event["pid"] - 1, event["args"]["operation"])
        for event in events
        if event["ph"] == "X" and event["pid"] != NETWORK
    )
    assert shown == sorted(zip(run.occupied.rank.tolist(), run.occupied.operation.tolist(), strict=True))


def test_a_long_step_is_cut_and_says_so():
    run = run_step(pipeline_step())
    found = document(run, most=10)
    assert sum(event["ph"] == "X" for event in found["traceEvents"]) == 10
    operations, transfers = found["otherData"]["notes"]
    assert operations == f"only the 10 earliest operations of {len(run.occupied.rank)} are shown"
    assert transfers.startswith("only the 0 earliest transfers")


def test_ranks_may_have_names_and_the_bytes_are_the_same_twice():
    run = run_step(pipeline_step())
    names = [f"stage {rank // 2} · gpu {rank}" for rank in range(4)]
    text = chrome_step_trace(run, names=names)
    assert text == chrome_step_trace(run, names=names)
    assert named(json.loads(text)["traceEvents"], "process")[3, None] == "stage 1 · gpu 2"
