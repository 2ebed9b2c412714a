"""A program written as traces computes the same, in the same time, however its ranks happen to run."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_programs import program_of

from ropewalk.collectives import (
    Program,
    binomial_broadcast,
    chain_reduce,
    direct_all_to_all,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    shift_all_to_all,
)
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProofError
from ropewalk.export.chakra import program_traces, read_chakra, replay, write_program
from ropewalk.export.chakra.program_read import decode_program
from ropewalk.export.chakra.schema import NodeType
from ropewalk.fabric import Fabric, IdealSwitch, Ring
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import lockstep, unroll
from ropewalk.task.expand import expand

RANKS = 4
PROGRAMS = st.one_of(
    st.builds(
        lambda order, both: ring_all_reduce([order], both_ways=both), st.permutations(range(RANKS)), st.booleans()
    ),
    st.sampled_from([
        mesh_all_reduce(RANKS), halving_doubling_all_reduce(RANKS), double_tree_all_reduce(RANKS, 3),
        ring_all_gather([[0, 2, 1, 3]]), direct_all_to_all(RANKS), shift_all_to_all(RANKS),
        binomial_broadcast(RANKS), chain_reduce((RANKS,), 3),
    ]),
)  # fmt: skip


def schedule_of(program: Program, fabric: Fabric) -> Schedule:
    hosts = np.arange(program.ranks, dtype=np.int32)
    return Schedule(program.name, program, hosts, shortest(fabric, *lockstep(program, 1.0).all_pairs()))


def on_a_switch(program: Program) -> Schedule:
    return schedule_of(program, IdealSwitch(program.ranks, bandwidth=3.0).build())


@given(PROGRAMS, st.integers(0, 2**32))
def test_a_trace_replays_to_what_everybody_wants_in_any_order_its_waits_allow(program, seed):
    replay(decode_program(program_traces(on_a_switch(program), 1000)), random.Random(seed).choice)


@given(PROGRAMS)
def test_the_program_that_comes_back_proves_itself_and_writes_the_same_bytes(program):
    traces = program_traces(on_a_switch(program), 1000)
    again = program_of(decode_program(traces))
    again.check()
    assert len(again.rounds) == len(program.rounds)
    assert program_traces(on_a_switch(again), 1000) == traces


@settings(max_examples=40)
@given(PROGRAMS, st.sampled_from([1000.0, 1001.0, 12.5, 0.0]), st.booleans())
def test_the_step_that_is_read_back_takes_the_time_of_the_program(program, size_bytes, on_a_ring):
    fabric = (Ring(RANKS, bandwidth=3.0) if on_a_ring else IdealSwitch(RANKS, bandwidth=3.0)).build()
    schedule = schedule_of(program, fabric)
    with tempfile.TemporaryDirectory() as folder:
        write_program(schedule, size_bytes, Path(folder) / "trace")
        step = read_chakra(Path(folder) / "trace")
    read_back = simulate(expand(step, schedule.hosts, fabric).graph, schedule.routes, symmetry=False)
    direct = simulate(unroll(lockstep(program, size_bytes)), schedule.routes, symmetry=False)
    assert read_back.makespan == pytest.approx(direct.makespan, rel=1e-9, abs=0)


@given(PROGRAMS, st.data())
def test_a_send_or_receive_that_moves_another_chunk_is_noticed(program, data):
    trace = decode_program(program_traces(on_a_switch(program), 1000))
    sends = [
        (rank, node) for rank, nodes in enumerate(trace.nodes) for node in nodes.values()
        if node.type == NodeType.COMM_SEND
    ]  # fmt: skip
    _, node = data.draw(st.sampled_from(sends))
    node.attributes["ropewalk_chunks"] = ""
    with pytest.raises(ProofError):
        replay(trace)
