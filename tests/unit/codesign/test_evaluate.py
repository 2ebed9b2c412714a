"""Steps on wirings: rings at once, latency round by round, relayed bytes on every link."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_plans import circle

from codesign import PLANS
from ropewalk.codesign.baselines import chosen_baselines
from ropewalk.codesign.evaluate import fastest_collectives, purposes_of_joined_groups, time_step
from ropewalk.codesign.job import site_of
from ropewalk.codesign.network import wired_network
from ropewalk.fabric.wiring import regular_rings
from ropewalk.routing import shortest
from ropewalk.task.step import Act, StepSketch


def all_reduce(size_bytes: float, servers: int = 12):
    sketch = StepSketch(servers)
    sketch.collective(Act.ALL_REDUCE, range(servers), size_bytes)
    return sketch.step()


@pytest.mark.parametrize(("jumps", "rings"), [((1,), 2), ((1, 5), 4)])
def test_rings_divide_the_bytes_of_a_sum_but_not_its_rounds(jumps, rings):
    network = wired_network(circle(12, jumps, matched=False), shortest)
    bytes_s = 2 * 11 / 12 * 1e9 / rings / 12.5e9
    assert time_step(all_reduce(1e9), network).seconds == pytest.approx(bytes_s + 22 * 1e-6)
    assert time_step(all_reduce(12.0), network).seconds == pytest.approx(22 * 1e-6, rel=1e-3)


def test_a_transfer_to_a_server_two_hops_away_is_carried_twice():
    sketch = StepSketch(12)
    sketch.send(0, 2, 1e9)
    timed = time_step(sketch.step(), wired_network(circle(12, matched=False), shortest))
    assert timed.tax == pytest.approx(2.0)
    assert timed.run.trace.link_bytes.sum() == pytest.approx(2e9)


def test_sums_and_relayed_transfers_share_links_so_rings_stretch():
    alone = time_step(all_reduce(1e9), wired_network(circle(12, matched=False), shortest)).seconds
    sketch = StepSketch(12)
    sketch.collective(Act.ALL_REDUCE, range(12), 1e9)
    sketch.send(0, 2, 1e9)
    assert time_step(sketch.step(), wired_network(circle(12, matched=False), shortest)).seconds > 1.3 * alone


def test_a_ring_and_its_opposite_visit_the_members_in_opposite_orders():
    forward, backward = regular_rings(7, (3,), both_ways=True)
    assert sorted(forward) == list(range(7))
    assert np.roll(forward[::-1], 1).tolist() == list(backward)
    assert regular_rings(2, (1,), both_ways=True) == ((0, 1),)


@pytest.mark.parametrize("recipe", PLANS, ids=lambda recipe: recipe.__name__)
def test_every_recipe_asks_for_networks_that_exist(recipe):
    for asked in recipe():
        made, _ = chosen_baselines(asked.compare, site_of(asked))
        assert made


def test_trees_use_the_cables_that_rings_leave_idle():
    network = wired_network(circle(12, (1, 5), matched=False), shortest)
    narrow = replace(network, rings=lambda size: regular_rings(size, (1,), both_ways=True))
    chosen = fastest_collectives(all_reduce(1e9), narrow)
    assert str(chosen.choice) == "communication=forest"
    assert chosen.seconds < 0.51 * time_step(all_reduce(1e9), narrow).seconds
    assert time_step(all_reduce(1e9), narrow, collectives=chosen.choice).seconds == chosen.seconds


def test_where_trees_are_not_faster_rings_stay():
    network = wired_network(circle(12, (1, 5), matched=False), shortest)
    sketch = StepSketch(12)
    for group in ([0, 3, 6, 9], [1, 4, 7, 10]):
        sketch.collective(Act.ALL_REDUCE, group, 1e9)
    step = sketch.step()
    assert fastest_collectives(step, network).seconds <= time_step(step, network).seconds


@pytest.mark.parametrize(
    ("groups", "trees"),
    [([range(12)], True), ([range(0, 12, 2)], False), ([range(12), range(0, 12, 2)], False), ([(0, 1, 2, 7)], True)],
)
def test_trees_are_only_made_for_groups_that_their_own_cables_join(groups, trees):
    network = wired_network(circle(12, (1, 5), matched=False), shortest)
    sketch = StepSketch(12)
    for group in groups:
        sketch.collective(Act.ALL_REDUCE, group, 1e9)
    assert purposes_of_joined_groups(sketch.step(), network) == (("communication",) if trees else ())


def test_groups_that_no_cables_join_have_no_trees_made_for_them(monkeypatch):
    def made(*_):
        raise AssertionError("others would have to relay, which takes minutes to find out on a thousand servers")

    monkeypatch.setattr("ropewalk.task.kinds.placed", made)
    network = wired_network(circle(12, (1, 5), matched=False), shortest)
    sketch = StepSketch(12)
    sketch.collective(Act.ALL_REDUCE, range(0, 12, 2), 1e9)
    step = sketch.step()
    assert fastest_collectives(step, network).seconds == time_step(step, network).seconds
    assert fastest_collectives(step, network, rings_s=7.0).seconds == 7.0
