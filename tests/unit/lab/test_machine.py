"""When the time of a run is not that of the network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.lab.machine import MachineUse

BUSY = MachineUse(2.0, 2, 0.0, 0.2, 0.2, 0.3, 0.0, "real-time", wakes=10_000, chain=60)
"""Other processes keep all cores busy, and ranks ahead of them wait 20 us each time."""


def test_many_short_delays_do_not_matter_to_ranks_that_are_ahead():
    assert BUSY.disturbed() is None


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (replace(BUSY, priority="nice"), "ranks waited 10 % of the run for a core"),
        (replace(BUSY, delay_s=0.6), "ranks waited 30 % of the run for a core"),
        (replace(BUSY, chain=3000), "ranks waited about 3 % of the run for cores"),
        (replace(BUSY, steal_s=0.1), "other virtual machines took 2.5 % of the cores"),
        (replace(BUSY, own_s=1.9), "ranks kept a core busy"),
        (replace(BUSY, own_s=1.7, softirq_s=2.0), "ranks and packets kept all cores busy"),
        (replace(BUSY, priority="", delay_s=0.0), "no core was idle"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_disturbs_a_run_is_said(use, why):
    assert use.disturbed() == why
