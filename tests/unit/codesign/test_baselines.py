"""Networks to compare with: their bandwidths, their rings, and which of them exist."""

import numpy as np
import pytest

from ropewalk.codesign.baselines import BASELINES, Site, chosen_baselines
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.network import StepNetwork, one_ring
from ropewalk.codesign.sprayed import sprayed_fat_tree, sprayed_leaf_spine
from ropewalk.errors import InputError
from ropewalk.fabric import FatTree, LeafSpine
from ropewalk.hardware.prices import BITS
from ropewalk.routing import shortest, spray
from ropewalk.task.step import Act, StepSketch

SITE = Site(servers=16, degree=4, bandwidth=12.5e9, latency=0.0)


def all_reduce(servers: int, size_bytes: float = 1e9):
    sketch = StepSketch(servers)
    sketch.collective(Act.ALL_REDUCE, range(servers), size_bytes)
    return sketch.step()


def shift(servers: int, apart: int, size_bytes: float = 1e9):
    sketch = StepSketch(servers)
    for server in range(servers):
        sketch.send(server, (server + apart) % servers, size_bytes)
    return sketch.step()


def seconds(name: str, step) -> float:
    return time_step(step, BASELINES[name].make(SITE).network).seconds


def test_an_all_reduce_on_the_ideal_switch_uses_all_ports_together():
    assert seconds("ideal-switch", all_reduce(16)) == pytest.approx(2 * 15 / 16 * 1e9 / 50e9)


def test_the_cost_equivalent_fat_tree_is_as_much_slower_as_its_money_buys_less():
    ratio = seconds("fat-tree", all_reduce(16)) / seconds("ideal-switch", all_reduce(16))
    assert ratio == pytest.approx(400 / 163.5, rel=1e-3)
    assert BASELINES["fat-tree"].make(SITE).cost == SITE.plan_cost


def test_a_sprayed_fat_tree_has_full_bisection_and_a_hashed_one_collides():
    across = shift(16, 8)
    assert seconds("fat-tree", across) == pytest.approx(1e9 / (163.5 / 8 * 1e9), rel=1e-3)
    assert seconds("fat-tree-ecmp", across) > 1.5 * seconds("fat-tree", across)


@pytest.mark.parametrize("tree", [FatTree(4, bandwidth=1e9, latency=1e-6), FatTree(8, 3, 2, bandwidth=1e9)])
def test_a_tree_that_sprays_is_a_tree_with_one_path(tree):
    rng = np.random.default_rng(tree.radix)
    sketch = StepSketch(tree.hosts)
    for _ in range(40):
        src, dst = rng.choice(tree.hosts, 2, replace=False).tolist()
        sketch.send(src, dst, float(rng.integers(1, 9)) * 1e6)
    sketch.collective(Act.ALL_REDUCE, range(tree.hosts), 1e6)
    sprayed = time_step(sketch.step(), StepNetwork("sprayed", tree.build(), spray, one_ring))
    merged = time_step(sketch.step(), StepNetwork("merged", sprayed_fat_tree(tree), shortest, one_ring))
    np.testing.assert_allclose(merged.run.trace.end, sprayed.run.trace.end, rtol=1e-9)


def test_a_leaf_spine_that_sprays_is_a_tree_with_one_spine():
    tree = LeafSpine(4, 3, 5, cables=2, bandwidth=1e9, latency=1e-6)
    step = shift(tree.hosts, 7)
    sprayed = time_step(step, StepNetwork("sprayed", tree.build(), spray, one_ring))
    merged = time_step(step, StepNetwork("merged", sprayed_leaf_spine(tree), shortest, one_ring))
    assert merged.seconds == pytest.approx(sprayed.seconds, rel=1e-9)


def test_half_of_the_uplinks_halve_what_leaves_a_rack():
    assert seconds("oversubscribed", shift(16, 8)) == pytest.approx(2 * 1e9 / 50e9)
    assert seconds("oversubscribed", all_reduce(16)) == pytest.approx(2 * 15 / 16 * 1e9 / 50e9)


def test_rings_of_a_torus_share_no_cable_so_all_ports_are_busy():
    assert seconds("torus", all_reduce(16)) == pytest.approx(2 * 15 / 16 * 1e9 / 50e9)


def test_rings_on_an_expander_cross_each_other():
    assert seconds("expander", all_reduce(16)) > 1.2 * seconds("torus", all_reduce(16))


def test_a_torus_short_of_axes_doubles_its_cables():
    wide = BASELINES["torus"].make(Site(servers=16, degree=8, bandwidth=12.5e9))
    assert "4 x 4" in wide.about
    assert np.allclose(wide.network.fabric.host_bandwidth(), 8 * 12.5e9)


def test_servers_that_fill_no_tree_leave_ports_of_it_empty():
    odd = Site(servers=22, degree=4, bandwidth=12.5e9)
    for name in ("fat-tree", "oversubscribed"):
        network = BASELINES[name].make(odd).network
        assert network.fabric.hosts >= 22
        assert time_step(all_reduce(22), network).seconds > 0


def test_circuits_reuse_the_strategy_of_the_ideal_switch():
    made, notes = chosen_baselines(["all"], SITE)
    assert [one.name for one in made] == list(BASELINES)
    assert notes == []
    reused = {one.name: one.strategy_of for one in made if one.strategy_of}
    assert reused == {
        "fat-tree-ecmp": "fat-tree",
        "one-matrix": "ideal-switch",
        "sip-ml": "ideal-switch",
        "ocs-reconfig": "ideal-switch",
        "ocs-reconfig-no-relay": "ideal-switch",
    }
    slow = next(one for one in made if one.name == "ocs-reconfig").circuits
    assert (slow.delay_s, slow.window_s) == (10e-3, 40e-3)


def test_circuits_take_the_delay_behind_the_colon():
    made, _ = chosen_baselines(["ocs-reconfig:100us", "ocs-reconfig-no-relay:1us"], SITE)
    assert [(one.name, one.circuits.delay_s, one.circuits.forwarding) for one in made] == [
        ("ocs-reconfig:100us", 1e-4, True),
        ("ocs-reconfig-no-relay:1us", 1e-6, False),
    ]
    with pytest.raises(InputError, match="does not change while a step runs"):
        chosen_baselines(["torus:1us"], SITE)


def test_under_all_a_network_that_does_not_exist_is_noted_and_a_typed_one_is_refused():
    odd = Site(servers=14, degree=4, bandwidth=12.5e9)
    made, notes = chosen_baselines(["all"], odd)
    assert "torus" not in [one.name for one in made]
    assert len(notes) == 1
    assert "torus is left out" in notes[0]
    with pytest.raises(InputError, match="do not form a torus"):
        chosen_baselines(["torus"], odd)
    with pytest.raises(InputError, match="use one of all, ideal-switch"):
        chosen_baselines(["token-ring"], odd)


def test_bandwidth_of_the_plan_and_its_cost_go_together():
    fast = Site(servers=16, degree=8, bandwidth=12.5e9)
    assert fast.plan_cost == pytest.approx(8064)
    assert BASELINES["fat-tree"].make(fast).network.fabric.bandwidth[0] * BITS == pytest.approx(299.1, abs=0.1)
