"""All-reduces over trees of switches that add up: proved, and as fast as the links of a host."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.in_network import LANES, in_network_all_reduce, switch_tree
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.errors import ProgramError
from ropewalk.fabric import Dgx, FatTree, IdealSwitch, LeafSpine, Torus
from ropewalk.sim import simulate_rounds
from ropewalk.task import lockstep


def seconds(fabric, segments=1, mixer=FREE, members=None):
    schedule = in_network_all_reduce(fabric, np.arange(fabric.hosts) if members is None else members, segments)
    schedule.program.check()
    rounds = lockstep(schedule.program, 1.0, 0.0, schedule.hosts, mixer)
    return simulate_rounds(rounds, schedule.routes).makespan


@pytest.mark.parametrize(
    ("fabric", "height"),
    [(IdealSwitch(8, bandwidth=1.0), 1), (LeafSpine(4, 2, 4, bandwidth=1.0), 2), (FatTree(4, bandwidth=1.0), 3)],
)
@pytest.mark.parametrize("segments", [1, 16])
def test_a_segment_climbs_and_falls_and_the_others_follow_one_round_apart(fabric, height, segments):
    assert seconds(fabric.build(), segments) == pytest.approx((segments + 2 * height - 1) / segments, rel=1e-9)


def test_a_switch_that_adds_slowly_takes_as_long_as_all_that_arrives():
    star = IdealSwitch(8, bandwidth=1.0).build()
    assert seconds(star, 16, Mixer(4.0)) == pytest.approx(8 / 4 + (1 + 1 / LANES) / 16, rel=1e-9)


def test_switches_below_a_root_share_the_work():
    assert seconds(LeafSpine(4, 2, 4, bandwidth=1.0).build(), 64, Mixer(2.0)) == pytest.approx(4 / 2, rel=0.06)


def test_a_group_below_one_leaf_does_not_climb_to_the_spine_for_nothing():
    tree = switch_tree(LeafSpine(4, 2, 4).build(), np.arange(4))
    assert len(set(tree.parent.values())) == 2


@pytest.mark.parametrize("fabric", [Dgx(2), Torus((3, 3))])
def test_hosts_do_not_pass_on_what_switches_add(fabric):
    with pytest.raises(ProgramError, match="leave in-network reduction out"):
        switch_tree(fabric.build(), np.arange(fabric.hosts))
