"""Traces of other tools: what they say is taken, what they leave open is named, all at once."""

import json

import pytest

from ropewalk.errors import GraphError
from ropewalk.export.chakra import read_chakra, write_chakra
from ropewalk.export.chakra.schema import Node, NodeType, encode_metadata
from ropewalk.export.chakra.wire import number_field, record
from ropewalk.task.step import Act, StepSketch


def trace(folder, ranks: list[list[Node]], groups: dict[str, list[int]] | None = None):
    """Write nodes as another tool would: nothing but what the schema has."""
    for rank, nodes in enumerate(ranks):
        data = record(encode_metadata({})) + b"".join(record(node.encoded()) for node in nodes)
        (folder / f"w.{rank}.et").write_bytes(data)
    if groups is not None:
        (folder / "w.json").write_text(json.dumps(groups))
    return folder / "w"


def comp(number: int, micros: int = 0, deps=(), **attributes) -> Node:
    return Node(number, f"comp {number}", NodeType.COMP, [], list(deps), micros, attributes)


def coll(number: int, kind: int, size: int, deps=(), **attributes) -> Node:
    return Node(
        number, "coll", NodeType.COMM_COLL, list(deps), [], 0, {"comm_type": kind, "comm_size": size, **attributes}
    )


def send(number: int, src: int, dst: int, size: int, deps=(), tag: int = 0) -> Node:
    return _point_to_point(number, NodeType.COMM_SEND, src, dst, size, deps, tag)


def recv(number: int, src: int, dst: int, size: int, deps=(), tag: int = 0) -> Node:
    return _point_to_point(number, NodeType.COMM_RECV, src, dst, size, deps, tag)


def _point_to_point(number, kind, src, dst, size, deps, tag) -> Node:
    attributes = {"comm_src": src, "comm_dst": dst, "comm_size": size, "comm_tag": tag}
    return Node(number, kind.name, kind, [], list(deps), 0, attributes)


def waits(step, operation: int) -> list[int]:
    return step.dep[step.dep_start[operation] : step.dep_start[operation + 1]].tolist()


def test_collectives_are_matched_in_order_on_every_rank_and_sizes_are_those_of_the_whole(tmp_path):
    prefix = trace(
        tmp_path,
        [
            [comp(1, 10), coll(2, 2, 300, [1], pg_name="7"), coll(9, 0, 64, [2])],
            [coll(5, 2, 300, pg_name="7"), coll(6, 0, 64, [5])],
            [coll(1, 0, 64)],
        ],
        {"7": [1, 0]},
    )
    step = read_chakra(prefix)
    assert [Act(act).name for act in step.act.tolist()] == ["COMPUTE", "ALL_GATHER", "ALL_REDUCE"]
    assert step.amount.tolist() == [10e-6, 600.0, 64.0]
    assert [step.groups[group].tolist() for group in step.group[1:].tolist()] == [[1, 0], [0, 1, 2]]
    assert [waits(step, operation) for operation in range(3)] == [[], [0], [1]]


def test_control_and_data_dependencies_both_delay(tmp_path):
    prefix = trace(tmp_path, [[comp(1, 10), comp(2, 10), Node(3, "both", NodeType.COMP, [1], [2], 5)]])
    assert waits(read_chakra(prefix), 2) == [0, 1]


def test_an_exchange_of_two_ranks_that_receive_after_they_send_is_no_circle(tmp_path):
    prefix = trace(
        tmp_path,
        [
            [send(1, 0, 1, 8), recv(2, 1, 0, 8, [1]), comp(3, 1, [2])],
            [send(1, 1, 0, 8), recv(2, 0, 1, 8, [1]), comp(3, 1, [2])],
        ],
    )
    step = read_chakra(prefix)
    assert [Act(act).name for act in step.act.tolist()] == ["SEND", "SEND", "COMPUTE", "COMPUTE"]
    # Who waits for a receive waits for the send and for what the receive waited for: here its own send.
    assert [waits(step, operation) for operation in range(4)] == [[], [], [0, 1], [0, 1]]


def test_sends_are_matched_by_tag_and_in_order_within_a_tag(tmp_path):
    prefix = trace(
        tmp_path,
        [
            [send(1, 0, 1, 10, tag=5), send(2, 0, 1, 20, tag=4), send(3, 0, 1, 30, tag=5)],
            [recv(1, 0, 1, 20, tag=4), recv(2, 0, 1, 10, tag=5), recv(3, 0, 1, 30, tag=5), comp(4, 1, [2])],
        ],
    )
    step = read_chakra(prefix)
    assert step.amount.tolist() == [10.0, 20.0, 30.0, 1e-6]
    assert waits(step, 3) == [0]


def test_metadata_is_passed_through(tmp_path):
    metadata = Node(2, "process groups", NodeType.METADATA, [], [1], 0)
    prefix = trace(tmp_path, [[comp(1, 10), metadata, comp(3, 5, [2])]])
    step = read_chakra(prefix)
    assert step.operations == 2
    assert waits(step, 1) == [0]


def test_work_on_the_cpu_and_loads_from_memory_have_their_place(tmp_path):
    load = Node(2, "load", NodeType.MEM_LOAD, [], [], 4)
    step = read_chakra(trace(tmp_path, [[comp(1, 10, is_cpu_op=True), load]]))
    assert [step.streams[stream] for stream in step.stream.tolist()] == ["cpu", "compute"]
    assert step.amount.tolist() == [10e-6, 4e-6]


def test_operations_without_a_duration_are_priced_by_the_longer_of_arithmetic_and_memory(tmp_path):
    prefix = trace(
        tmp_path, [[comp(1, num_ops=2000, tensor_size=10), comp(2, num_ops=10, tensor_size=600), comp(3, 7)]]
    )
    step = read_chakra(prefix, peak_flops=1e6, memory_bandwidth=1e5)
    assert step.amount.tolist() == [2e-3, 6e-3, 7e-6]
    with pytest.raises(
        GraphError, match=r"node 1 \(comp 1\) says 2000 operations[\s\S]*peak_flops and memory_bandwidth"
    ):
        read_chakra(prefix)


def test_numbers_are_no_order_of_work(tmp_path):
    step = read_chakra(trace(tmp_path, [[comp(1, 5, [9]), comp(9, 3)]]))
    assert step.amount.tolist() == [3e-6, 5e-6]
    assert waits(step, 1) == [0]


@pytest.mark.parametrize(
    ("ranks", "groups", "message"),
    [
        ([[send(1, 0, 1, 8)], []], None, r"node 1 is a send \(0 to 1, tag 0\) without a receive"),
        ([[], [recv(4, 0, 1, 8, tag=2)]], None, r"rank 1: node 4 is a receive \(0 to 1, tag 2\) without a send"),
        ([[send(1, 0, 1, 8)], [recv(1, 0, 1, 9)]], None, "sends 8 bytes, but rank 1 expects 9"),
        ([[send(1, 0, 0, 8), recv(2, 0, 0, 8)]], None, "sends to its own rank"),
        ([[coll(1, 3, 8)]], None, "is a collective GATHER: known are ALL_REDUCE"),
        ([[coll(1, 77, 8)]], None, "is a collective of type 77"),
        ([[coll(1, 0, 8, pg_name="3")]], {"2": [0]}, "names group '3', which is not listed"),
        ([[coll(1, 0, 8, pg_name="2")], []], {"2": [1]}, "a group without this rank"),
        ([[coll(1, 0, 8)], []], None, "rank 1 never takes part"),
        ([[coll(1, 0, 8)], [coll(1, 0, 9)]], None, "is ALL_REDUCE of 9 bytes on rank 1 and ALL_REDUCE of 8 on rank 0"),
        ([[coll(1, 0, 8)], [coll(1, 6, 8)]], None, "is ALL_TO_ALL of 8 bytes on rank 1"),
        ([[comp(1, 1, [2]), comp(2, 1, [1])]], None, "2 operations form a dependency cycle.*node 1 of rank 0"),
        ([[comp(1, 1, [7])]], None, "waits for node 7, which is not there"),
        ([[comp(1, 1), comp(1, 2)]], None, "node 1 .* occurs twice"),
        ([[Node(1, "x", NodeType.INVALID)]], None, "type 0, which is not a task"),
        ([[comp(1)]], {"1": [0, 5]}, "not a list of distinct ranks"),
        ([[comp(1, num_ops="many")]], None, "attribute num_ops of node 1 is 'many', not a number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, ranks, groups, message):
    with pytest.raises(GraphError, match=message):
        read_chakra(trace(tmp_path, ranks, groups))


def test_collectives_along_dimensions_ask_for_a_group(tmp_path):
    from ropewalk.export.chakra.wire import bytes_field

    dims = bytes_field(10, bytes_field(1, b"involved_dim") + bytes_field(28, bytes_field(1, b"\x01\x00")))
    prefix = trace(tmp_path, [[]])
    data = record(encode_metadata({})) + record(coll(1, 0, 8).encoded() + dims)
    (tmp_path / "w.0.et").write_bytes(data)
    with pytest.raises(GraphError, match=r"along dimensions \[True, False\].*name its group"):
        read_chakra(prefix)


def test_everything_wrong_comes_in_one_error(tmp_path):
    prefix = trace(tmp_path, [[send(1, 0, 2, 8), coll(2, 3, 8)], [comp(1, num_ops=5)], [comp(1, 1, [9])]])
    with pytest.raises(GraphError, match=r"4 findings[\s\S]*without a receive") as problem:
        read_chakra(prefix)
    assert all(text in str(problem.value) for text in ("GATHER", "peak_flops", "node 9"))


def test_missing_and_truncated_files_are_findings(tmp_path):
    sketch = StepSketch(4)
    sketch.collective(Act.ALL_REDUCE, range(4), 64)
    write_chakra(sketch.step(), tmp_path / "t")
    with pytest.raises(GraphError, match=r"there is no file .*other.0.et"):
        read_chakra(tmp_path / "other")
    whole = (tmp_path / "t.2.et").read_bytes()
    (tmp_path / "t.2.et").write_bytes(whole[:-3])
    with pytest.raises(GraphError, match=r"t.2.et cannot be read: .*truncated: 3 of its") as refused:
        read_chakra(tmp_path / "t")
    assert "never takes part" not in str(refused.value)  # that follows from the broken file, and would bury it
    (tmp_path / "t.2.et").unlink()
    with pytest.raises(GraphError, match=r"1 rank has no file \(rank 2\)"):
        read_chakra(tmp_path / "t")
    (tmp_path / "t.3.et").unlink()
    with pytest.raises(GraphError, match="a step of 4 ranks, but there are 2"):
        read_chakra(tmp_path / "t")
    (tmp_path / "t.1.et").write_bytes(b"")
    (tmp_path / "t.json").write_text("[")
    with pytest.raises(GraphError, match=r"the file is empty[\s\S]*t.json: line 1, column 2"):
        read_chakra(tmp_path / "t")
    (tmp_path / "t.0.et").write_bytes(record(number_field(1, 3)))
    with pytest.raises(GraphError, match="the first record is not GlobalMetadata"):
        read_chakra(tmp_path / "t")


def test_a_thousand_findings_are_listed_in_part(tmp_path):
    prefix = trace(tmp_path, [[comp(number, 1, [0]) for number in range(1, 1001)]])
    with pytest.raises(GraphError, match="and 950 more"):
        read_chakra(prefix)
