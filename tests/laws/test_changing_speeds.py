"""Links that change their speed during a run: nothing changes where speeds do not, and bytes are kept where they do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.fabric import LeafSpine
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.result import curves_of
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.sim.changing import DOWN, simulate_changing
from ropewalk.task import Sketch

FABRIC = LeafSpine(2, 1, 2, bandwidth=1000.0, latency=0.01).build()
ROUTES = shortest(FABRIC, *every_pair(FABRIC))


@st.composite
def graphs(draw):
    """Transfers and computations on few hosts, some waiting for others."""
    sketch, made = Sketch(), []
    for number in range(draw(st.integers(1, 8))):
        after = [made[draw(st.integers(0, number - 1))]] if number and draw(st.booleans()) else []
        src = draw(st.integers(0, 3))
        if draw(st.integers(0, 3)):
            dst = (src + draw(st.integers(1, 3))) % 4
            made.append(sketch.transfer(src, dst, draw(st.integers(1, 2000)), after=after))
        else:
            made.append(sketch.compute(src, draw(st.integers(1, 20)) / 10, after=after))
    return sketch.graph()


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), times=st.lists(st.floats(0.01, 5.0), max_size=3))
def test_changes_to_the_same_speeds_change_nothing(graph, times):
    quiet = simulate(graph, ROUTES)
    changed = simulate_changing(graph, ROUTES, [(at, np.array(FABRIC.bandwidth)) for at in times])
    np.testing.assert_allclose(changed.start, quiet.start, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(changed.end, quiet.end, rtol=1e-6, atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), at=st.floats(0.01, 3.0), part=st.floats(0.1, 3.0))
def test_every_byte_is_carried_whatever_the_speeds(graph, at, part):
    changed = simulate_changing(graph, ROUTES, [(at, part * FABRIC.bandwidth)])
    quiet = simulate(graph, ROUTES)
    assert curves_of(changed, 1.0).sent_bytes[-1] == pytest.approx(quiet.link_bytes, rel=1e-6, abs=1e-3)
    assert not np.isnan(changed.end).any()
    assert (changed.end >= changed.start).all()


def test_a_transfer_waits_for_a_link_that_is_down_and_goes_on_where_it_was():
    sketch = Sketch()
    sketch.transfer(0, 1, 2000.0)
    other = sketch.transfer(2, 3, 1000.0)
    down = np.array(FABRIC.bandwidth)
    down[FABRIC.link_dst == 1] *= DOWN
    trace = simulate_changing(sketch.graph(), ROUTES, [(0.52, down), (3.02, np.array(FABRIC.bandwidth))])
    assert trace.end[0] == pytest.approx(0.02 + 2.0 + 2.5, rel=1e-6)
    assert trace.end[other] == pytest.approx(1.02, rel=1e-6)
