"""Tokens sent once to each place, beside what HybridEP's own benchmark prints (DeepEP, docs/README_Hybrid-EP.md).

4,096 tokens of 7,168 numbers in bf16, eight of eight experts per rank, chosen at random; time of the kernels alone, the
mean of dispatching and combining. Its bandwidths count what stays on a rank or in a server as well.
"""

from __future__ import annotations

import pytest

from ropewalk.training.network import transport_of
from ropewalk.workload.dispatch import reached, sent_once

BYTES, CHOICES, LOCAL = 4096 * 7168 * 2, 8, 8


def published_s(places: int, experts: int, dispatched: float, combined: float) -> float:
    """Seconds, from GB/s of all copies that reach a place."""
    copies = BYTES * reached(places, experts, CHOICES)
    return (copies / dispatched + copies / combined) / 2e9


@pytest.mark.parametrize(
    ("name", "ranks", "dispatched", "combined"),
    [
        ("b200", 8, 734.95, 673.84), ("gb200", 8, 750.15, 684.27), ("gb200", 16, 661.93, 600.75),
        ("gb200", 32, 629.79, 547.25), ("gb200", 36, 612.85, 543.27),
    ],
)  # fmt: skip
def test_inside_one_domain_of_nvlink(name, ranks, dispatched, combined):
    sent = BYTES * CHOICES * sent_once(ranks, 64, LOCAL * ranks, CHOICES) * (ranks - 1) / ranks
    seconds = sent / (transport_of(name).efficiency_inside * 900e9)
    assert seconds == pytest.approx(published_s(ranks, LOCAL * ranks, dispatched, combined), rel=0.14)


@pytest.mark.parametrize(
    ("ranks", "dispatched", "combined"), [(16, 71.71, 62.95), (32, 57.69, 57.46), (64, 49.97, 49.77)]
)
def test_between_servers_of_h100(ranks, dispatched, combined):
    servers = ranks // 8
    sent = BYTES * CHOICES * sent_once(ranks, 8, LOCAL * ranks, CHOICES) * (servers - 1) / servers
    seconds = sent / (transport_of("h100").efficiency_across * 50e9)
    assert seconds == pytest.approx(published_s(servers, LOCAL * ranks, dispatched, combined), rel=0.05)
