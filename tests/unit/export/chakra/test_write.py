"""Traces as other tools read them: golden bytes, sizes as they are counted there, numbers in a sensible order."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import GraphError, InputError
from ropewalk.export.chakra import write_chakra
from ropewalk.export.chakra.order import numbers
from ropewalk.export.chakra.schema import Node, NodeType, decode_node
from ropewalk.export.chakra.wire import records
from ropewalk.task.step import Act, StepSketch


def nodes(path) -> list[Node]:
    return [decode_node(message) for message in records(path.read_bytes())[1:]]


def test_a_small_file_has_these_bytes(tmp_path):
    sketch = StepSketch(2)
    forward = [sketch.compute(rank, 250e-6, label="fw") for rank in range(2)]
    sketch.collective(Act.ALL_REDUCE, [0, 1], 4096, after=forward, label="ar")
    paths = write_chakra(sketch.step(), tmp_path / "small")
    assert [path.name for path in paths] == ["small.0.et", "small.1.et", "small.json"]
    expected = (
        # GlobalMetadata: version, ropewalk_ranks = 2, ropewalk_streams, ropewalk_flops = 0
        "65 0a05302e302e34 12120a0e726f706577616c6b5f72616e6b734802"
        "122d0a10726f706577616c6b5f73747265616d73f201180a07636f6d707574650a0d636f6d6d756e69636174696f6e"
        "12190a0e726f706577616c6b5f666c6f7073190000000000000000"
        # Node 1: fw, COMP, 250 microseconds; is_cpu_op = false, ropewalk_operation = 0
        "33 0801 12026677 1804 38fa01 520e0a0969735f6370755f6f70d80100"
        "52160a12726f706577616c6b5f6f7065726174696f6e4800"
        # Node 3: ar, COMM_COLL, waits for node 1; comm_type = 0, comm_size = 4096, ropewalk_operation = 2
        "52 0803 12026172 1807 2a0101 520e0a0969735f6370755f6f70d80100"
        "520d0a09636f6d6d5f747970654800 520e0a09636f6d6d5f73697a65488020"
        "52160a12726f706577616c6b5f6f7065726174696f6e4802"
    )
    assert (tmp_path / "small.0.et").read_bytes().hex() == expected.replace(" ", "")
    assert (tmp_path / "small.json").read_text() == '{"1": [0, 1]}\n'


@pytest.mark.parametrize(
    ("act", "comm_type", "comm_size"),
    [
        (Act.ALL_REDUCE, 0, 1200),
        (Act.REDUCE, 1, 1200),
        (Act.ALL_GATHER, 2, 300),  # what one of the four ranks contributes
        (Act.BROADCAST, 5, 1200),
        (Act.ALL_TO_ALL, 6, 1200),
        (Act.REDUCE_SCATTER, 7, 1200),
        (Act.BARRIER, 9, 1200),
    ],
)
def test_sizes_are_counted_as_simulators_of_traces_count_them(tmp_path, act, comm_type, comm_size):
    sketch = StepSketch(4)
    sketch.collective(act, range(4), 1200)
    write_chakra(sketch.step(), tmp_path / "t")
    for rank in range(4):
        (node,) = nodes(tmp_path / f"t.{rank}.et")
        assert node.type == NodeType.COMM_COLL
        assert (node.attributes["comm_type"], node.attributes["comm_size"]) == (comm_type, comm_size)
        assert "pg_name" not in node.attributes


def test_groups_are_named_as_in_the_json_file_and_all_ranks_need_no_name(tmp_path):
    sketch = StepSketch(4)
    for group in ([0, 1], [3, 2], [0, 1, 2, 3], [1, 0, 2, 3]):
        sketch.collective(Act.ALL_REDUCE, group, 8)
    write_chakra(sketch.step(), tmp_path / "t")
    groups = json.loads((tmp_path / "t.json").read_text())
    assert groups == {"1": [0, 1], "2": [3, 2], "3": [0, 1, 2, 3], "4": [1, 0, 2, 3]}
    assert [node.attributes.get("pg_name") for node in nodes(tmp_path / "t.2.et")] == ["2", None, "4"]


def test_sends_and_receives_come_in_pairs_with_tags(tmp_path):
    sketch = StepSketch(3)
    first = sketch.send(0, 2, 10)
    sketch.send(0, 2, 20, after=[first])
    sketch.send(1, 2, 30)
    write_chakra(sketch.step(), tmp_path / "t")

    def ends(node: Node) -> tuple[object, ...]:
        return (NodeType(node.type).name, *(node.attributes[f"comm_{what}"] for what in ("src", "dst", "tag", "size")))

    assert [ends(node) for node in nodes(tmp_path / "t.0.et")] == [
        ("COMM_SEND", 0, 2, 0, 10), ("COMM_SEND", 0, 2, 1, 20),
    ]  # fmt: skip
    assert sorted(ends(node) for node in nodes(tmp_path / "t.2.et")) == [
        ("COMM_RECV", 0, 2, 0, 10), ("COMM_RECV", 0, 2, 1, 20), ("COMM_RECV", 1, 2, 0, 30),
    ]  # fmt: skip


def test_a_rank_waits_only_for_its_own_nodes(tmp_path):
    sketch = StepSketch(2)
    forward = [sketch.compute(rank, 1e-3) for rank in range(2)]
    moved = sketch.send(0, 1, 5, after=[forward[0]])
    sketch.compute(1, 1e-3, after=[moved])
    write_chakra(sketch.step(), tmp_path / "t")
    by_id = {node.id: node for node in nodes(tmp_path / "t.1.et")}
    assert sorted(NodeType(node.type).name for node in by_id.values()) == ["COMM_RECV", "COMP", "COMP"]
    received = next(node for node in by_id.values() if node.type == NodeType.COMM_RECV)
    assert received.data_deps == []
    assert [node.data_deps for node in by_id.values() if node.data_deps] == [[received.id]]


def test_waiting_for_other_ranks_without_communication_is_refused(tmp_path):
    sketch = StepSketch(2)
    other = sketch.compute(0, 1e-3, label="mine")
    sketch.compute(1, 1e-3, after=[other], label="yours")
    with pytest.raises(GraphError, match=r"operation 1 \(yours\) waits for operation 0 \(mine\)[\s\S]*add one"):
        write_chakra(sketch.step(), tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_many_such_waits_are_counted_not_listed(tmp_path):
    sketch = StepSketch(2)
    other = sketch.compute(0, 1e-3)
    for _ in range(30):
        sketch.compute(1, 1e-3, after=[other])
    with pytest.raises(GraphError, match="and 10 more"):
        write_chakra(sketch.step(), tmp_path / "t")


def test_numbers_follow_the_time_at_which_work_could_start_not_the_order_of_writing():
    sketch = StepSketch(1)
    last = sketch.compute(0, 3.0)
    tail = sketch.compute(0, 1.0, after=[last])
    early = sketch.compute(0, 1.0, priority=1)
    urgent = sketch.compute(0, 1.0)
    middle = sketch.compute(0, 1.0, after=[urgent])
    number = numbers(sketch.step())
    order = sorted([last, tail, early, urgent, middle], key=lambda operation: number[operation])
    assert order == [last, urgent, early, middle, tail]
    assert sorted(number.tolist()) == [1, 2, 3, 4, 5]


def test_a_collective_of_one_rank_is_work_of_no_time_for_others(tmp_path):
    sketch = StepSketch(2)
    sketch.collective(Act.ALL_REDUCE, [1], 64)
    write_chakra(sketch.step(), tmp_path / "t")
    (node,) = nodes(tmp_path / "t.1.et")
    assert (node.type, node.duration_micros) == (NodeType.COMP, 0)


def test_times_are_whole_microseconds_for_others_and_exact_beside_it(tmp_path):
    sketch = StepSketch(1)
    sketch.compute(0, 1.6e-6)
    sketch.compute(0, 4e-7)
    sketch.compute(0, 3e-6)
    write_chakra(sketch.step(), tmp_path / "t")
    found = [(node.duration_micros, node.attributes.get("ropewalk_seconds")) for node in nodes(tmp_path / "t.0.et")]
    assert found == [(2, 1.6e-6), (0, 4e-7), (3, None)]


def test_files_of_a_larger_trace_in_the_same_place_are_not_mixed_up(tmp_path):
    sketch = StepSketch(2)
    sketch.compute(0, 1e-3)
    write_chakra(replace(sketch.step(), ranks=3), tmp_path / "t")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"t.2.et already exists"):
        write_chakra(sketch.step(), tmp_path / "t")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_where_one_file_cannot_be_written_none_is(tmp_path):
    (tmp_path / "t.1.et").mkdir()
    sketch = StepSketch(2)
    sketch.compute(0, 1e-3)
    with pytest.raises(InputError, match=r"t.1.et: it is a folder"):
        write_chakra(sketch.step(), tmp_path / "t")
    assert [path.name for path in tmp_path.iterdir()] == ["t.1.et"]


def test_the_same_step_gives_the_same_bytes(tmp_path):
    sketch = StepSketch(3)
    done = [sketch.compute(rank, np.pi * 1e-3, label=f"layer {rank}") for rank in range(3)]
    sketch.collective(Act.ALL_TO_ALL, [2, 0, 1], 100 / 3, after=done, priority=2, stream=0)
    for name in ("a", "b"):
        write_chakra(sketch.step(), tmp_path / name)
    for rank in range(3):
        assert (tmp_path / f"a.{rank}.et").read_bytes() == (tmp_path / f"b.{rank}.et").read_bytes()
