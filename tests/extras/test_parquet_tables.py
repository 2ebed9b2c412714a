"""Tables as Parquet: the same columns as CSV, with types, and missing values as nulls."""

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'ropewalk[tables]'")

import pyarrow.parquet

from ropewalk.export.tables import task_table, write_parquet
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task.expand import expand
from ropewalk.task.step import Act, StepSketch

pytestmark = pytest.mark.extras


def test_parquet_holds_the_table(tmp_path):
    sketch = StepSketch(4)
    done = [sketch.compute(rank, 0.1 * (rank + 1), label="forward") for rank in range(4)]
    sketch.collective(Act.ALL_GATHER, range(4), 100 / 3, after=done, label="gather")
    fabric = IdealSwitch(4, bandwidth=8.0).build()
    expansion = expand(sketch.step(), range(4), fabric)
    trace = simulate(expansion.graph, shortest(fabric, *expansion.pairs()))
    write_parquet(trace, tmp_path / "tasks.parquet", expansion)
    read = pyarrow.parquet.read_table(tmp_path / "tasks.parquet")
    for name, column in task_table(trace, expansion).items():
        assert read[name].to_pylist() == (column if isinstance(column, list) else column.tolist())


def test_columns_have_types_even_where_all_values_are_missing(tmp_path):
    sketch = StepSketch(2)
    sketch.compute(0, 1.0)
    fabric = IdealSwitch(2).build()
    expansion = expand(sketch.step(), range(2), fabric)
    trace = simulate(expansion.graph, shortest(fabric, np.array([0]), np.array([1])))
    write_parquet(trace, tmp_path / "t.parquet")
    schema = pyarrow.parquet.read_schema(tmp_path / "t.parquet")
    types = {name: str(schema.field(name).type) for name in ("bytes", "bottleneck", "peer")}
    assert types == {"bytes": "double", "bottleneck": "string", "peer": "int64"}
