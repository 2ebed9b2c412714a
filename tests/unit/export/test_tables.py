"""Tasks as tables: a row each, what does not apply left empty, floats that come back to the bit."""

import csv
import importlib.util

import numpy as np
import pytest
from flow_worlds import worlds
from hypothesis import given, settings

from ropewalk.errors import GraphError, InputError
from ropewalk.export.tables import task_table, write_csv, write_parquet
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind
from ropewalk.task.expand import expand
from ropewalk.task.step import Act, StepSketch


def small_run():
    sketch = StepSketch(2)
    forward = sketch.compute(0, 0.25, label="forward")
    met = sketch.collective(Act.ALL_REDUCE, [0, 1], 8.0, after=[forward], label="sum, all")
    sketch.send(1, 0, 4.0, after=[met], stream=1, label="back")
    fabric = IdealSwitch(3, bandwidth=8.0).build()
    expansion = expand(sketch.step(), [2, 0], fabric)
    return simulate(expansion.graph, shortest(fabric, *expansion.pairs())), expansion


def test_every_task_is_a_row_that_says_what_where_and_when(tmp_path):
    trace, expansion = small_run()
    write_csv(trace, tmp_path / "tasks.csv", expansion)
    # Both links of a transfer are equally full here, and either may be named.
    held = [trace.routes.fabric.link_name(link) for link in trace.bound_by[[2, 3, 5]].tolist()]
    assert (tmp_path / "tasks.csv").read_text() == (
        "task,label,kind,gpu,stream,peer,start_s,end_s,seconds,bytes,bottleneck,operation,rank\n"
        "0,forward,compute,2,0,,0.0,0.25,0.25,,,0,0\n"
        '1,"sum, all",marker,,1,,0.25,0.25,,,,1,\n'
        f'2,"sum, all",transfer,2,1,0,0.25,1.25,,8.0,{held[0]},1,0\n'
        f'3,"sum, all",transfer,0,1,2,0.25,1.25,,8.0,{held[1]},1,1\n'
        '4,"sum, all",marker,,1,,1.25,1.25,,,,1,\n'
        f"5,back,transfer,0,1,2,1.25,1.75,,4.0,{held[2]},2,1\n"
    )


def test_without_an_expansion_there_are_no_columns_of_the_step():
    trace, expansion = small_run()
    assert set(task_table(trace, expansion)) - set(task_table(trace)) == {"operation", "rank"}


def test_the_expansion_of_another_run_is_refused():
    trace, _ = small_run()
    other = expand(StepSketch(2).step(), range(2), IdealSwitch(2).build())
    with pytest.raises(GraphError, match="6 tasks, but the expansion has 0"):
        task_table(trace, other)


@settings(max_examples=30)
@given(worlds())
def test_numbers_come_back_from_csv_to_the_bit(tmp_path_factory, world):
    graph, routes = world
    trace = simulate(graph, routes, symmetry=False)
    path = tmp_path_factory.mktemp("csv") / "tasks.csv"
    write_csv(trace, path)
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == graph.tasks
    assert [float(row["start_s"]) for row in rows] == trace.start.tolist()
    assert [float(row["end_s"]) for row in rows] == trace.end.tolist()
    moved = [float(row["bytes"]) for row in rows if row["bytes"]]
    assert moved == graph.amount[graph.kind == TaskKind.TRANSFER].tolist()


def test_an_empty_trace_has_a_header(tmp_path):
    fabric = IdealSwitch(2).build()
    expansion = expand(StepSketch(2).step(), range(2), fabric)
    trace = simulate(expansion.graph, shortest(fabric, np.array([0]), np.array([1])))
    write_csv(trace, tmp_path / "t.csv", expansion)
    assert (tmp_path / "t.csv").read_text().count("\n") == 1


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed here")
def test_parquet_without_pyarrow_names_the_extra(tmp_path):
    trace, _ = small_run()
    with pytest.raises(InputError, match=r'pip install "ropewalk\[tables\]"'):
        write_parquet(trace, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    trace, _ = small_run()
    with pytest.raises(InputError, match="it is a folder"):
        write_csv(trace, tmp_path)
