"""Programs as traces: what stands in the files, and what is refused."""

import numpy as np
import pytest

from ropewalk.collectives import chain_reduce, mesh_all_reduce, ring_all_gather, ring_all_reduce
from ropewalk.collectives.mixer import Mixer
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import GraphError, InputError, ProofError
from ropewalk.export.chakra import (
    names,
    program_traces,
    read_chakra,
    read_program_trace,
    replay,
    write_chakra,
    write_program,
)
from ropewalk.export.chakra.chunk_runs import runs_numbers, runs_text
from ropewalk.export.chakra.program_read import decode_program
from ropewalk.export.chakra.schema import NodeType
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import lockstep
from ropewalk.task.expand import expand
from ropewalk.task.step import StepSketch


def on_a_switch(program):
    fabric = IdealSwitch(program.ranks, bandwidth=1.0).build()
    hosts = np.arange(program.ranks, dtype=np.int32)
    return Schedule("test", program, hosts, shortest(fabric, *lockstep(program, 1.0).all_pairs()))


def test_a_ring_of_two_sends_receives_adds_and_passes_on():
    trace = decode_program(program_traces(on_a_switch(ring_all_reduce([[0, 1]])), 10))
    seen = [(node.id, node.name, node.type, node.data_deps) for node in trace.nodes[0].values()]
    assert seen == [
        (1, "send", NodeType.COMM_SEND, []),
        (2, "receive", NodeType.COMM_RECV, []),
        (3, "add", NodeType.COMP, [2]),
        (4, "send", NodeType.COMM_SEND, [1, 3]),
        (5, "receive", NodeType.COMM_RECV, [1, 3]),
    ]
    sent = trace.nodes[0][1].attributes
    assert (sent["comm_size"], sent["comm_src"], sent["comm_dst"], sent["comm_tag"]) == (5, 0, 1, 0)
    assert trace.nodes[0][4].attributes["comm_tag"] == 1


def test_a_rank_with_nothing_to_do_still_has_a_node_that_ends():
    program = ring_all_gather([[0, 1]])
    idle = type(program)("with a spectator", 3, 2, program.rounds, lambda c: np.eye(3, 2, dtype=bool)[:, c],
                         lambda c: np.array([[1, 1], [1, 1], [0, 0]], bool)[:, c])  # fmt: skip
    trace = decode_program(program_traces(on_a_switch(idle), 8))
    assert [node.name for node in trace.nodes[2].values()] == ["nothing to do"]
    replay(trace)


def test_many_waits_go_through_one_joining_node():
    trace = decode_program(program_traces(on_a_switch(mesh_all_reduce(8)), 8))
    assert [node.name for node in trace.nodes[0].values()].count("join") == 1
    assert max(len(node.data_deps) for node in trace.nodes[0].values()) == 14
    long = decode_program(program_traces(on_a_switch(chain_reduce((3,), 100)), 100))
    assert max(len(node.data_deps) for nodes in long.nodes for node in nodes.values()) <= 18


def test_additions_take_their_time_where_a_speed_is_given(tmp_path):
    schedule = on_a_switch(ring_all_reduce([[0, 1]]))
    write_program(schedule, 10, tmp_path / "slow", mixer=Mixer(2.0))
    step = read_chakra(tmp_path / "slow")
    graph = expand(step, schedule.hosts, schedule.routes.fabric).graph
    assert simulate(graph, schedule.routes).makespan == pytest.approx(5 + 2.5 + 5)


def test_files_come_together_and_are_the_same_every_time(tmp_path):
    schedule = on_a_switch(ring_all_reduce([[0, 2, 1]]))
    paths = write_program(schedule, 1000, tmp_path / "ring")
    assert [path.name for path in paths] == ["ring.0.et", "ring.1.et", "ring.2.et", "ring.json"]
    before = [path.read_bytes() for path in paths]
    write_program(schedule, 1000, tmp_path / "ring")
    assert [path.read_bytes() for path in paths] == before
    replay(read_program_trace(tmp_path / "ring"))


def test_files_of_more_ranks_are_not_left_to_be_mixed_up(tmp_path):
    (tmp_path / "ring.5.et").write_bytes(b"")
    with pytest.raises(InputError, match=r"ring\.5\.et already exists"):
        write_program(on_a_switch(ring_all_reduce([[0, 1]])), 8, tmp_path / "ring")
    assert [path.name for path in tmp_path.iterdir()] == ["ring.5.et"]


def test_a_missing_wait_is_found_by_an_order_that_it_allows():
    trace = decode_program(program_traces(on_a_switch(ring_all_reduce([[0, 1, 2]])), 9))
    for nodes in trace.nodes:
        for node in nodes.values():
            if node.type == NodeType.COMM_SEND:
                node.data_deps = []
    with pytest.raises(ProofError, match="ends with chunk"):
        replay(trace)


def test_an_addition_of_what_was_never_received_is_reported():
    trace = decode_program(program_traces(on_a_switch(ring_all_reduce([[0, 1]])), 8))
    addition = next(node for node in trace.nodes[0].values() if names.ARRIVAL in node.attributes)
    addition.attributes[names.ARRIVAL] = addition.id
    with pytest.raises(ProofError, match=f"adds what node {addition.id} received, which has received nothing"):
        replay(trace)


def test_a_circle_of_waits_is_reported_as_nodes_that_never_start():
    trace = decode_program(program_traces(on_a_switch(ring_all_reduce([[0, 1]])), 8))
    trace.nodes[0][1].data_deps = [4]
    with pytest.raises(ProofError, match="never start"):
        replay(trace)


def test_traces_of_steps_are_no_programs(tmp_path):
    sketch = StepSketch(2)
    sketch.send(0, 1, 8)
    write_chakra(sketch.step(), tmp_path / "step")
    with pytest.raises(GraphError, match="is not a trace of a program"):
        read_program_trace(tmp_path / "step")
    with pytest.raises(GraphError, match="one file for each rank"):
        read_program_trace(tmp_path / "nowhere")


@pytest.mark.parametrize("size", [-1, float("inf")])
def test_sizes_that_do_not_exist_are_refused(size):
    with pytest.raises(GraphError, match="give"):
        program_traces(on_a_switch(ring_all_reduce([[0, 1]])), size)


def test_runs_keep_their_order():
    assert runs_text([5, 6, 1, 2, 3, 9]) == "5-6,1-3,9"
    assert runs_numbers("5-6,1-3,9", 10) == [5, 6, 1, 2, 3, 9]
    assert runs_text([]) == ""
    assert runs_numbers("", 3) == []
    assert runs_numbers("3-1", 9) is None
    assert runs_numbers("a", 9) is None
