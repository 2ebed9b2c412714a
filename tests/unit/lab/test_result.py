"""Flow by flow and link by link: curves end with all bytes, and counters are read as the kernel writes them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ropewalk.fabric import LeafSpine
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.netlink import Counted, _queues
from ropewalk.lab.result import curves_of
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
