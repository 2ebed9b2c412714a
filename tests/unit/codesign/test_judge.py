"""Which wiring a strategy gets: the simulation decides among those that are made for it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topologies
from ropewalk.codesign.job import job_of
from ropewalk.codesign.judge import Judge
from ropewalk.codesign.network import wired_network
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.routes import router_of
from ropewalk.strategy.seating import Manner, Seat, Seating, coset
from ropewalk.task.step import Act, StepSketch

SEATS = Path(__file__).parents[2] / "data" / "dlrm_128_seats.json"
SEATING = Seating(8, ())


class Sends:
    """A job with one strategy: a sum over eight servers and transfers that stand apart by different distances."""

    def __init__(self, sum_bytes: float, pair_bytes: float) -> None:
        pairs = np.zeros((8, 8))
        for a, b in ((0, 4), (1, 7), (2, 5), (3, 6)):
            pairs[a, b] = pairs[b, a] = pair_bytes
        self.demands = Demands(8, (GroupSum(tuple(range(8)), sum_bytes),), pairs)
        self.space: Any = SimpleNamespace(seating=lambda places: SEATING, start=())
        self.question = SimpleNamespace(single_panel=False, servers=8)

    def step(self, seating: Seating) -> Any:
        sketch = StepSketch(8)
        sketch.collective(Act.ALL_REDUCE, range(8), self.demands.sums[0].size_bytes)
        for a, b in np.argwhere(self.demands.pairs).tolist():
            sketch.send(a, b, float(self.demands.pairs[a, b]))
        return sketch.step()

    def wirings(self, seating: Seating) -> Any:
        return find_topologies(self.demands, degree=4, bandwidth=1e9)[:3]

    def network(self, seating: Seating, wiring: Any) -> Any:
        return wired_network(wiring, router_of(wiring, self.demands))


def test_pairs_get_ports_where_that_is_faster() -> None:
    """45 of 100 bytes go between pairs; the published split rounds that down to no port."""
    job: Any = Sends(sum_bytes=55e6 / 14, pair_bytes=45e6 / 8)
    judge = Judge(job)
    first, *_ = job.wirings(SEATING)
    chosen = judge.wire(SEATING)
    assert (first.degree_pairs, chosen.degree_pairs) == (0, 2)
    assert judge.on_wiring(SEATING, chosen) < judge.on_wiring(SEATING, first)


def test_the_published_split_stays_where_pairs_send_little() -> None:
    job: Any = Sends(sum_bytes=99e6 / 14, pair_bytes=1e6 / 8)
    assert Judge(job).wire(SEATING).degree_pairs == 0


def test_dlrm_on_128_servers_is_wired_for_all_its_groups_together() -> None:
    """Rings of 128 and of 32 with jumps 1 and 3 take 60.1 ms with these seats, with jumps 1 and 1 a tenth more."""
    seats = [
        Seat(coset(128, servers, first), Manner(manner))
        for _, manner, servers, first in json.loads(SEATS.read_text())["seats"]
    ]
    job = job_of(PlanQuestion("dlrm", published_servers(128, 4), precision="tf32"))
    judge = Judge(job)
    seating = Seating(128, tuple(seats))
    wiring = judge.wire(seating)
    assert {(rings.size, rings.jumps) for rings in wiring.rings} == {(128, (1,)), (32, (3,))}
    assert judge.on_wiring(seating, wiring) == pytest.approx(60.13e-3, abs=2e-5)
