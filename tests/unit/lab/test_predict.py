"""What is predicted of a lab: speeds less headers, full buckets at the start, TCP of the kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import LabError
from ropewalk.fabric import IdealSwitch
from ropewalk.lab.measure import speeds
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.predict import flow_level, kernel_tcp
from ropewalk.lab.queues import burst_bytes
from ropewalk.routing import shortest
from ropewalk.task import Sketch

SHARE = 1448 / 1514


def on_a_switch(*transfers):
    """Transfers of (src, dst, bytes) between three hosts at 20 Mbit/s, all at once, and what buckets pass of them."""
    network, sketch = LabNetwork(IdealSwitch(3, bandwidth=2.5e6).build()), Sketch()
    for src, dst, size in transfers:
        sketch.transfer(src, dst, size)
    fabric = replace(network.fabric, bandwidth=speeds(network, {}), latency=0 * network.fabric.latency)
    src, dst = (np.array([one[end] for one in transfers]) for end in (0, 1))
    return flow_level(network, sketch.graph(), shortest(fabric, src, dst))


def test_headers_are_taken_off_every_link():
    network = LabNetwork(IdealSwitch(3, 2.5e6).build())
    assert speeds(network, {0: 8_000_000})[:2].tolist() == [1e6, 2.5e6]
    trace, _ = on_a_switch((0, 1, 1e6))
    assert trace.routes.fabric.bandwidth[0] == pytest.approx(2.5e6 * SHARE)


def test_what_full_buckets_hold_passes_at_once_and_is_shared():
    bucket = burst_bytes(20_000_000, fair=True) * SHARE
    alone, case = on_a_switch((0, 1, 1e6))
    assert case.free.tolist() == pytest.approx([bucket])
    assert alone.makespan == pytest.approx((1e6 - bucket) / (2.5e6 * SHARE))
    _, case = on_a_switch((0, 1, 1e6), (0, 2, 1e6))
    assert case.free.tolist() == pytest.approx([bucket / 2] * 2)
    _, case = on_a_switch((0, 1, 100.0))
    assert case.free.tolist() == [100.0]


def test_curves_of_what_is_predicted_end_with_all_bytes():
    trace, case = on_a_switch((0, 1, 1e6), (0, 2, 5e5))
    assert case.curves(trace).sent_bytes[-1] == pytest.approx(trace.link_bytes / SHARE)


def test_the_packet_level_says_which_tcp_it_knows():
    network = LabNetwork(IdealSwitch(3, 2.5e6).build(), settings=LabSettings(congestion="bbr"))
    with pytest.raises(LabError, match="use cubic or reno"):
        kernel_tcp(network)
