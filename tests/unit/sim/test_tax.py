"""One meaning of tax: every place that tells it of a run tells the same number."""

from __future__ import annotations

import numpy as np
import pytest
from design_tax import routes_of, tax_of

from ropewalk.codesign.demands import Demands
from ropewalk.codesign.evaluate import TimedStep, time_step
from ropewalk.codesign.network import StepNetwork, one_ring, wired_network
from ropewalk.codesign.reconfigure import CircuitSwitch, run_on_circuits
from ropewalk.codesign.routes import router_of
from ropewalk.fabric import IdealSwitch
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.report.trace import trace_page
from ropewalk.routing import shortest
from ropewalk.task.step import Step, StepSketch


def one_send(to: int = 2) -> Step:
    sketch = StepSketch(12)
    sketch.send(0, to, 1e9)
    return sketch.step()


def on_a_switch() -> TimedStep:
    return time_step(one_send(), StepNetwork("switch", IdealSwitch(12, 12.5e9).build(), shortest, one_ring))


def test_a_byte_through_one_switch_is_on_two_links_whoever_tells_it() -> None:
    timed = on_a_switch()
    trace = timed.run.trace
    assert timed.tax == trace.tax == trace.summary()["tax"] == pytest.approx(2.0)
    assert ">2<" in trace_page(trace)


def test_counting_from_demands_and_from_circuits_gives_the_tax_of_the_run() -> None:
    cables = tuple((min(a, (a + 1) % 12), max(a, (a + 1) % 12), 1) for a in range(12))
    wiring = Wiring(12, 2, True, 12.5e9, 1e-6, (GroupRings(12, (1,)),), cables, 2, 0)
    pairs = np.zeros((12, 12))
    pairs[0, 2] = 1e9
    demands = Demands(12, (), pairs)
    timed = time_step(one_send(), wired_network(wiring, router_of(wiring, demands)))
    counted = tax_of(wiring, demands, routes_of(wiring, demands)).tax
    assert timed.tax == timed.run.trace.summary()["tax"] == pytest.approx(counted)
    direct = run_on_circuits(one_send(), CircuitSwitch(1, 12.5e9, delay_s=1e-3))
    assert direct.tax == pytest.approx(1.0)


def test_where_nothing_is_asked_for_nothing_is_relayed() -> None:
    sketch = StepSketch(12)
    sketch.compute(0, 1.0)
    timed = time_step(sketch.step(), StepNetwork("switch", IdealSwitch(12, 12.5e9).build(), shortest, one_ring))
    assert timed.tax == timed.run.trace.summary()["tax"] == 1.0
