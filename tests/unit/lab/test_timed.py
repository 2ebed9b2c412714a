"""Faults at times of a run: as people write them, as speeds of links, as what a job says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_labs import LINK, answer_of_slow_link

from ropewalk.errors import LabError
from ropewalk.fabric import Ring
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.timed import TimedFault, changes_of, timed_fault
from ropewalk.sim.changing import DOWN

NETWORK = LabNetwork(Ring(3, 2.5e6).build())


@pytest.mark.parametrize("text", ["h0-h1", "h0-h1 down", "h0-h1 down at 1s until 2s", "h0-h1 gone now"])
def test_faults_that_cannot_be_read_are_refused_with_an_example(text):
    with pytest.raises(LabError, match="write it like 'h0-h1 down at "):
        timed_fault(text)


def test_a_fault_ends_after_it_begins():
    with pytest.raises(LabError, match="ends before it starts"):
        timed_fault("h0-h1 down at 2s up at 1s")


def test_a_cable_takes_both_directions_down_and_a_speed_one():
    own = NETWORK.fabric.bandwidth / 2
    faults = [timed_fault("h0->h1 down at 1s up at 2s"), timed_fault("h1->h2 5Mbps at 1.5s")]
    changes = changes_of(NETWORK, faults, own)
    assert [at for at, _ in changes] == [1.0, 1.5, 2.0]
    down, slow, up = (speeds / own for _, speeds in changes)
    assert down.tolist() == pytest.approx([DOWN, DOWN, 1, 1, 1, 1])
    assert sorted(slow.tolist()) == pytest.approx([DOWN, DOWN, 0.25, 1, 1, 1])
    assert sorted(up.tolist()) == pytest.approx([0.25, 1, 1, 1, 1, 1])


def test_what_stalled_is_said_and_that_the_timer_of_tcp_outlived_the_fault():
    answer = answer_of_slow_link(part=0.5, faults=(TimedFault(LINK, None, 2.1, 2.4),))
    (run,) = answer.runs
    answer = replace(answer, runs=(replace(run, stalls=((1, 2.1, 2.9),)),))
    notes = answer.notes()
    assert "in every run leaf0->spine0 is down from 2.1 s to 2.4 s" in notes
    assert "stalled transfers, longest first: h0 to h2 from 2.1 s to 2.9 s" in notes
    assert answer.parting.reasons[0].startswith("TCP noticed 500 ms after leaf0->spine0 was up")
