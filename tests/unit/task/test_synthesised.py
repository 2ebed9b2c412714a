"""Schedules that are made for the network, in steps: made once for groups that are alike, as fast as they promise."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.collectives.table import COLLECTIVES, Collective
from ropewalk.errors import GraphError
from ropewalk.fabric import Dgx, Fabric, RandomRegular, Ring, Torus
from ropewalk.routing import ROUTERS, router_for, shortest
from ropewalk.sim import simulate
from ropewalk.sim.level import LevelUse, run_at_level
from ropewalk.task import kinds, synthesised
from ropewalk.task.alike import alike_by_paths, alike_by_translation, own_links
from ropewalk.task.expand import Expansion, expand
from ropewalk.task.step import Act, Step, StepSketch
from ropewalk.task.transport import Transport

MADE_FOR_NETWORKS = [name for name, one in COLLECTIVES.items() if one.own_paths]


def together(ranks: int, groups: list[list[int]], act: Act = Act.ALL_REDUCE, size_bytes: float = 1e9) -> Step:
    sketch = StepSketch(ranks)
    for group in groups:
        sketch.collective(act, group, size_bytes)
    return sketch.step()


def router_on(fabric: Fabric):
    return ROUTERS[router_for(fabric).name].make(0)


def run(step: Step, fabric: Fabric, name: str, mode: str = "fluid", **options: object) -> tuple[float, Expansion]:
    router = router_on(fabric)
    asked = expand(
        step, range(fabric.hosts), fabric, collectives=CollectiveChoice(name), router=router, mode=mode, **options
    )
    expansion, routes = asked.routed(router)
    routes.check()
    return simulate(expansion.graph, routes).makespan, expansion


@pytest.fixture
def made(monkeypatch) -> Counter:
    """How often each collective is made."""
    count: Counter = Counter()
    make = Collective.schedule

    def counting(self, act, group):
        count[self.name] += 1
        return make(self, act, group)

    monkeypatch.setattr(Collective, "schedule", counting)
    return count


RAILS = [list(range(rail, 32, 8)) for rail in range(8)]
ROWS = [list(range(row, row + 4)) for row in range(0, 16, 4)]


@pytest.mark.parametrize("name", MADE_FOR_NETWORKS)
@pytest.mark.parametrize(
    ("fabric", "groups"),
    [(Dgx(4), RAILS), (Dgx(4), [list(range(32))]), (Torus((4, 4)), ROWS), (Torus((3, 3)), [[0, 4, 8, 5]])],
    ids=["rails", "all gpus", "rows of a torus", "some hosts of a torus"],
)
def test_groups_that_run_together_are_as_fast_as_promised(name, fabric, groups):
    built = fabric.build()
    seconds, expansion = run(together(built.hosts, groups), built, name)
    assert 1e9 / seconds == pytest.approx(expansion.kinds[0].promise, rel=1e-9)


def test_rows_of_a_torus_use_both_directions_where_a_ring_goes_one_way():
    torus = Torus((4, 4)).build()
    step = together(16, ROWS)
    assert run(step, torus, "forest")[0] == pytest.approx(run(step, torus, "ring")[0] / 2, rel=1e-9)


def test_groups_that_are_alike_are_made_once(made):
    _, expansion = run(together(32, RAILS), Dgx(4).build(), "forest")
    (kind,) = expansion.kinds
    assert len(kind.members) == 8
    assert kind.links == "own"
    assert made["forest"] == 1


def test_every_group_keeps_to_the_images_of_the_links(made):
    dgx = Dgx(4).build()
    router = router_on(dgx)
    hosts = np.array(RAILS, np.int32)
    own = own_links(dgx, hosts, router)
    for alike in (*alike_by_paths(own), *alike_by_translation(dgx, hosts)):
        for row, image in zip(alike.rows.tolist(), alike.image, strict=True):
            link = np.flatnonzero(alike.image[0] >= 0)
            moved = dict(zip(hosts[alike.rows[0]].tolist(), hosts[row].tolist(), strict=True))
            for one in link.tolist():
                for end in (dgx.link_src, dgx.link_dst):
                    if int(end[one]) in moved:
                        assert end[image[one]] == moved[int(end[one])]
            assert np.array_equal(dgx.bandwidth[image[link]], dgx.bandwidth[link])


def test_a_group_whose_link_is_slower_is_not_like_the_others():
    dgx = Dgx(4).build()
    slow = dgx.bandwidth.copy()
    first_nic = int(np.flatnonzero((dgx.link_src == 0) & (dgx.bandwidth < dgx.bandwidth.max()))[0])
    slow[first_nic] /= 2
    slower = replace(dgx, bandwidth=slow, builder=None)
    found = alike_by_paths(own_links(slower, np.array(RAILS, np.int32), shortest))
    assert [alike.rows.tolist() for alike in found] == [[0], [1, 2, 3, 4, 5, 6, 7]]
    # Through the GPUs beside them the slow one has the NICs of all rails, so here sharing the fabric promises more.
    _, expansion = run(together(32, RAILS), slower, "forest")
    assert {kind.links for kind in expansion.kinds} == {"shared"}


def test_what_would_have_to_be_made_too_often_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(synthesised, "MOST_SYNTHESES", 1)
    fabric = RandomRegular(12, 3, seed=1).build()
    step = together(12, [[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    with pytest.raises(GraphError, match=r"3 groups differ.*built more than 1 times: use ring"):
        run(step, fabric, "forest")


def test_groups_and_links_that_would_fill_the_memory_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(synthesised, "MOST_IMAGES", 50)
    with pytest.raises(GraphError, match=r"2 groups on 36 links are more than forest supports: use ring"):
        run(together(12, [[0, 1, 2], [3, 4, 5]]), RandomRegular(12, 3, seed=1).build(), "forest")


def test_a_send_between_the_same_hosts_keeps_its_own_path():
    ring = Ring(4, bandwidth=1e9).build()
    sketch = StepSketch(4)
    sketch.collective(Act.ALL_REDUCE, range(4), 1e6)
    sketch.send(0, 1, 1e6)
    _, expansion = run(sketch.step(), ring, "forest")
    sent = np.flatnonzero((expansion.graph.place == 0) & (expansion.graph.peer == 1))
    assert (expansion.graph.route[sent] >= 0).sum() == len(sent) - 1


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
@pytest.mark.parametrize("level", ["flow", "wire", "packet"])
def test_paths_of_their_own_are_taken_at_every_level(level, mode):
    torus = Torus((3, 3), bandwidth=1e9, latency=1e-6).build()
    router = router_on(torus)
    asked = expand(
        together(9, [list(range(9))], size_bytes=9e5), range(9), torus, collectives=CollectiveChoice("forest"),
        router=router, mode=mode,
    )  # fmt: skip
    expansion, routes = asked.routed(router)
    run = run_at_level(expansion.graph, routes, LevelUse(level))
    # 2.25 GB/s at best; packets and rounds of so few bytes take longer, but not twice as long.
    assert 9e5 / 2.25e9 <= run.trace.makespan < 2 * 9e5 / 2.25e9


def test_the_depth_of_the_trees_is_paid_in_rounds_and_latency():
    ring = Ring(5, bandwidth=1e9, latency=1e-3).build()
    step = together(5, [list(range(5))], Act.BROADCAST, 0.0)
    seconds, _ = run(step, ring, "forest", transport=Transport(0.0, 0.0, 1e-3))
    # Half of the buffer goes each way round: four hosts after each other, a round and a link each.
    assert seconds == pytest.approx(8e-3, rel=1e-9)


def test_the_same_question_is_answered_with_the_same_fingerprint():
    torus = Torus((4, 4)).build()
    prints = {run(together(16, ROWS), torus, "forest")[1].kinds[0].digest() for _ in range(2)}
    others = {run(together(16, ROWS), torus, name)[1].kinds[0].digest() for name in ("ring", "mesh")}
    assert len(prints) == 1
    assert len(prints | others) == 3


def test_without_a_router_nothing_brings_its_own_paths():
    with pytest.raises(GraphError, match=r"forest has its own paths.*use one of ring"):
        expand(together(4, [[0, 1, 2, 3]]), range(4), Ring(4).build(), collectives=CollectiveChoice("forest"))


def test_trees_that_would_be_too_many_tasks_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(kinds, "MOST_WRITTEN", 100)
    with pytest.raises(GraphError, match=r"the rounds of forest are .* tasks, more than 1e\+02: use mode fluid"):
        run(together(9, [list(range(9))]), Torus((3, 3)).build(), "forest", "rounds")


def test_programs_are_routed_as_before():
    torus = Torus((4, 4)).build()
    expansion = expand(together(16, ROWS), range(16), torus)
    routes = shortest(torus, *expansion.pairs())
    assert (expansion.graph.route < 0).all()
    assert expansion.routed(shortest)[1].pairs == routes.pairs
