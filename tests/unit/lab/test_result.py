"""Flow by flow and link by link: curves end with all bytes, and counters are read as the kernel writes them."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tiny_labs import QUIET

from ropewalk.fabric import LeafSpine
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.netlink import Counted, _queues
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import LabRun, LinkSamples
from ropewalk.lab.result import curves_of
from ropewalk.lab.runs import curves_seen
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import Sketch


def test_predicted_curves_never_fall_and_end_with_the_bytes_of_each_link():
    fabric = LeafSpine(2, 2, 2, bandwidth=1000.0).build()
    routes = shortest(fabric, *every_pair(fabric))
    sketch = Sketch()
    first = sketch.transfer(0, 2, 500.0)
    sketch.transfer(1, 2, 300.0)
    sketch.transfer(0, 3, 200.0, after=[first])
    trace = simulate(sketch.graph(), routes, record_rates=True)
    curves = curves_of(trace, 2.0)
    assert (np.diff(curves.sent_bytes, axis=0) >= -1e-9).all()
    assert curves.sent_bytes[-1] == pytest.approx(2 * trace.link_bytes)
    assert curves.at_s[-1] == trace.makespan


def test_the_look_after_the_end_of_a_run_is_of_its_end():
    network = LabNetwork(LeafSpine(2, 2, 2, bandwidth=1000.0).build())
    end, link = next(iter(network.link_of_end.items()))
    samples = LinkSamples(((0.0,), (1.0,), (2.6,)), (end,), ((0,), (500,), (1000,)), ((0,), (80,), (0,)))
    run = LabRun((0.0,), (2.0,), (), QUIET, samples)
    curves = curves_seen(network, run)
    assert curves.at_s.tolist() == [0.0, 1.0, 2.0]
    assert curves.of_link(link) == [0.0, 500.0, 1000.0]
    assert curves.waiting_bytes is not None
    assert curves.waiting_bytes[:, link].tolist() == [0.0, 80.0, 0.0]


def test_a_look_that_is_held_up_between_namespaces_moves_no_link_ahead():
    network = LabNetwork(LeafSpine(2, 2, 2, bandwidth=1000.0).build())
    (early, first), (late, second) = list(network.link_of_end.items())[:2]
    # Both send 1000 bytes/s; the second is looked at 0.4 s after the first.
    samples = LinkSamples(((0.0, 0.0), (1.0, 1.4), (2.0, 2.0)), (early, late), ((0, 0), (1000, 1400), (2000, 2000)),
                          ((0, 0), (0, 0), (0, 0)))  # fmt: skip
    curves = curves_seen(network, LabRun((0.0,), (2.0,), (), QUIET, samples))
    assert curves.at_s.tolist() == [0.0, 1.2, 2.0]
    assert curves.of_link(first) == pytest.approx([0.0, 1200.0, 2000.0])
    assert curves.of_link(second) == pytest.approx([0.0, 1200.0, 2000.0])


def attribute(kind: int, body: bytes) -> bytes:
    length = 4 + len(body)
    return struct.pack("=HH", length, kind) + body + bytes(-length % 4)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


def test_only_the_queue_in_front_of_an_interface_is_counted():
    statistics = attribute(
        7, attribute(1, struct.pack("=QIxxxx", 5000, 4)) + attribute(3, struct.pack("=5I", 1, 90, 2, 0, 7))
    )
    outer = message(36, struct.pack("=BxxxiIII", 0, 3, 0x10000, 0xFFFFFFFF, 0) + attribute(1, b"tbf\0") + statistics)
    inner = message(36, struct.pack("=BxxxiIII", 0, 3, 0x20000, 0x10001, 0) + attribute(1, b"pfifo\0") + statistics)
    done = message(3, bytes(4))
    assert list(_queues(outer + inner + done)) == [(3, Counted(5000, 4, 2, 90))]
