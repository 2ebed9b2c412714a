"""Doctored traces: every result that no network could produce is refused."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import PhysicsError
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import Trace, simulate
from ropewalk.sim.physics import check_loads, check_trace
from ropewalk.task import Sketch


def honest() -> Trace:
    sketch = Sketch()
    first = sketch.transfer(0, 1, 12.5e9, label="first")
    sketch.transfer(1, 2, 12.5e9, after=[first], label="second")
    fabric = IdealSwitch(3).build()
    return simulate(sketch.graph(), shortest(fabric, np.array([0, 1]), np.array([1, 2])), symmetry=False)


def test_an_honest_trace_passes():
    trace = honest()
    assert trace.end.tolist() == pytest.approx([1.0, 2.0])
    check_trace(trace)


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [
        ([0.0, 1.0], [1.0, np.nan], "never ran"),
        ([0.0, 2.0], [1.0, 1.5], "ended before it started"),
        ([0.0, 0.5], [1.0, 2.0], "started before one it waits for"),
        ([0.0, 1.0], [1.0, 1.5], "less than its own path needs"),
    ],
)
def test_a_doctored_trace_is_refused(start, end, part):
    with pytest.raises(PhysicsError, match=part):
        check_trace(replace(honest(), start=np.array(start), end=np.array(end)))


def test_a_run_shorter_than_its_busiest_link_needs_is_refused():
    trace = honest()
    with pytest.raises(PhysicsError, match="h0->switch alone needs"):
        check_loads(trace.routes, trace.link_bytes, 0.9)
