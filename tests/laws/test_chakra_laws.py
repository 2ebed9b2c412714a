"""A step written as a trace and read again is the same step, and takes the same time."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from traceable_steps import RANKS, assert_same_step, traceable_steps

from ropewalk.export.chakra import read_chakra, write_chakra
from ropewalk.export.chakra.order import numbers
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind
from ropewalk.task.expand import expand
from ropewalk.task.step import Step


def reread(step: Step) -> Step:
    with tempfile.TemporaryDirectory() as folder:
        write_chakra(step, Path(folder) / "trace")
        return read_chakra(Path(folder) / "trace")


def times(step: Step) -> list[float]:
    fabric = IdealSwitch(RANKS, bandwidth=3.0).build()
    graph = expand(step, range(RANKS), fabric).graph
    moved = graph.kind == TaskKind.TRANSFER
    ends = (graph.place[moved], graph.peer[moved]) if moved.any() else (np.array([0]), np.array([1]))
    trace = simulate(graph, shortest(fabric, *ends), symmetry=False)
    return trace.end.tolist()


@given(traceable_steps(), st.dictionaries(st.sampled_from(["bubble", "ünï"]), st.floats(allow_nan=False), max_size=2))
def test_a_step_comes_back_from_its_trace(step, phases):
    step = replace(step, phases=phases)
    assert_same_step(step, reread(step))


@given(traceable_steps())
def test_a_step_that_came_back_takes_the_same_time_to_the_bit(step):
    assert times(reread(step)) == times(step)


@given(traceable_steps(), st.integers(1, 5))
def test_operations_that_stand_for_several_still_do(step, repeats):
    several = replace(step, repeats=np.full(step.operations, repeats, np.int32))
    assert_same_step(several, reread(several))


@given(traceable_steps())
def test_numbers_put_every_operation_after_those_it_waits_for(step):
    number = numbers(step)
    waiter = np.repeat(np.arange(step.operations), np.diff(step.dep_start))
    assert (number[waiter] > number[step.dep]).all()
    assert sorted(number.tolist()) == list(range(1, step.operations + 1))
