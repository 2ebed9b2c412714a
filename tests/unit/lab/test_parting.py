"""Where prediction and measurement part: the first link that falls behind, when it does, and what explains it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_labs import LINK, answer_of_sends, answer_of_slow_link

from ropewalk.lab.machine import MachineUse

SHARED = [(0, 1, 1e6, ()), (0, 2, 1e6, ()), (1, 3, 1e6, (0,))]
"""Two transfers that share an uplink, and one that passes the first on: (from, to, bytes, after)."""


def test_a_run_as_predicted_does_not_part():
    found = answer_of_slow_link().parting
    assert found.link is None
    assert found.said()[0].startswith("prediction and measurement agree")


def test_the_slow_link_is_named_with_the_time_from_which_it_is_behind():
    found = answer_of_slow_link(part=0.5).parting
    # The first transfer needs no uplink and ends after 2 s; the second takes 2 s instead of 1 s.
    assert found.link == LINK
    assert found.began_s == pytest.approx(2.2, abs=0.1)
    assert found.behind_s == pytest.approx(0.5, abs=0.02)
    assert found.at_s == pytest.approx(3.0, abs=0.02)
    assert found.reasons == ("no counter of the kernel explains it",)


def test_a_link_that_is_as_far_off_is_not_named_beside_the_first():
    found = answer_of_slow_link(part=0.5).parting
    alike = replace(found, farthest="leaf1->spine0", farthest_s=found.behind_s)
    assert "the most on any link" not in alike.said()[0]
    farther = replace(found, farthest="leaf1->spine0", farthest_s=1.0)
    assert "(the most on any link: 1 s, on leaf1->spine0)" in farther.said()[0]


def test_drops_and_a_disturbed_machine_explain_a_link_that_is_behind():
    answer = answer_of_slow_link(part=0.5, dropped=3, retransmitted=4)
    (reason,) = answer.parting.reasons
    assert "dropped 3 packets" in reason
    assert "retransmitted 4 segments" in reason
    busy = MachineUse(2.0, 2, 0.0, 0.5, 0.2, 0.3, 3.0)
    once = replace(answer, dropped=1, retransmitted=1).parting.reasons
    assert once[0].startswith("queues dropped 1 packet and TCP retransmitted 1 segment in all runs")
    (run,) = answer.runs
    disturbed = answer_of_slow_link(part=0.5, runs=(type(run)(run.start, run.end, (), busy, run.samples),))
    assert disturbed.parting.reasons[0] == "the machine disturbed the run: ranks waited 25 % of the run for a core"


def test_no_drops_are_said_in_words():
    (reason,) = answer_of_slow_link(part=0.5, retransmitted=4).parting.reasons
    assert reason == (
        "queues dropped no packets and TCP retransmitted 4 segments in all runs, each after a timeout or duplicate "
        "acknowledgements"
    )
    (reason,) = answer_of_slow_link(part=0.5, dropped=2).parting.reasons
    assert reason == "queues dropped 2 packets and TCP retransmitted no segments in all runs"


def test_transfers_that_end_one_after_the_other_explain_a_link_that_is_ahead():
    """Two of 1 MB share an uplink of 1 MB/s evenly for 2 s; served in turn, the first is passed on at 1 s."""
    found = answer_of_sends(SHARED, [(0.0, 1.0), (1.0, 2.0), (1.0, 2.0)]).parting
    assert (found.link, found.behind_s) == ("switch->h1", pytest.approx(-0.5, abs=0.02))
    assert found.reasons == (
        "transfers that share h0->switch end one after the other, not all at the end as with equal shares: the first "
        "one up to 1 s early, and what waits for it starts earlier",
    )
    assert answer_of_sends(SHARED, [(0.0, 2.0), (0.0, 2.0), (2.0, 3.0)]).parting.link is None


def test_a_bucket_that_fills_in_every_pause_explains_more_than_one_burst():
    """To and fro, 0.1 s each: every link pauses for 0.1 s, and each send is 8 ms shorter than predicted."""
    fro = [(0, 1, 1e5, ()), *((at % 2, 1 - at % 2, 1e5, (at - 1,)) for at in range(1, 12))]
    found = answer_of_sends(fro, [(0.092 * at, 0.092 * (at + 1)) for at in range(12)]).parting
    assert found.behind_s == pytest.approx(-0.09, abs=0.02)
    (reason,) = found.reasons
    assert reason.startswith("its token bucket fills again in every pause, ")
    assert "and lets 8 kB pass at once afterwards, 8 ms of sending each time" in reason


def test_a_run_that_is_faster_is_explained_by_a_link_that_is_ahead():
    """A third uplink that starts late is behind, which explains nothing: the run ends early."""
    found = answer_of_sends([*SHARED, (2, 3, 1e6, ())], [(0.0, 1.0), (1.0, 2.0), (1.0, 2.0), (0.5, 1.5)])
    assert found.error < -0.3
    assert (found.parting.link, found.parting.behind_s < 0) == ("switch->h1", True)


def test_a_link_that_is_ahead_had_a_full_bucket():
    found = answer_of_slow_link(part=2.0)
    assert found.parting.link is None  # the uplink of the host still limits it
    ahead = answer_of_slow_link(part=0.9)
    swapped = answer_of_slow_link(
        fair=False, levels=(type(ahead.levels[0])("flow", ahead.predicted.start, ahead.predicted.end, ahead.curves[0]),)
    )
    assert swapped.parting.behind_s < 0
    assert "bucket was full" in swapped.parting.reasons[0]
