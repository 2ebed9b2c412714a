"""Cables for a strategy that somebody already has: uniform degrees on servers with ports to be wired."""

from itertools import pairwise

import numpy as np
import pytest

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.numbering import on_cosets
from ropewalk.codesign.planes import patch_list
from ropewalk.codesign.step_demands import demands_of_step
from ropewalk.codesign.wiring_for import wired, wiring_for
from ropewalk.errors import FabricError, StrategyError
from ropewalk.hardware import Cluster, Ports, Servers
from ropewalk.plans import document
from ropewalk.task.step import Act, Step, StepSketch
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.network import expand_on, run_on
from ropewalk.training.planned import plan_of, question_of

CABLE = 25e9


def cluster(servers: int, gpus: int, degree: int) -> Cluster:
    return Cluster((Servers(servers, gpus, "h100", 1e13, degree, CABLE),), Ports(degree), latency_s=0.0)


def all_reduces(ranks: int, *groups: tuple[range, float]) -> Step:
    sketch = StepSketch(ranks)
    for group, size in groups:
        sketch.collective(Act.ALL_REDUCE, group, size)
    return sketch.step()


@pytest.fixture(scope="module")
def question() -> TrainingQuestion:
    """GPT-2 on 8 servers of 2 GPUs: stages on neighbouring servers, replicas of a stage on two."""
    return TrainingQuestion(
        "gpt2", cluster(8, 2, 4), tensor=2, pipeline=4, batch=32, micro_batch=1, sequence=64,
        network=NetworkUse(transport=Transport()),
    )  # fmt: skip


@pytest.fixture(scope="module")
def asked(question: TrainingQuestion) -> TrainingQuestion:
    return wired(question)


def test_replicas_on_neighbouring_servers_are_wired_as_rings_of_their_own() -> None:
    blocks = [(range(8 * at, 8 * at + 8), 1e9) for at in range(3)]
    designed = wiring_for(all_reduces(24, *blocks), cluster(12, 2, 4))
    joined = {cable[:2] for cable in designed.wiring.cables}
    for first in (0, 4, 8):
        for order in designed.wiring.ring_orders(4):
            members = [first + at for at in order]
            assert {(min(hop), max(hop)) for hop in pairwise([*members, members[0]])} <= joined
    assert patch_list(designed.wiring).planes == 4


def test_an_all_reduce_of_gpus_runs_at_the_speed_of_the_cables_of_its_servers() -> None:
    """8 GPUs in 4 servers of 4 ports: two rings both ways, so a hop has 4 cables for 2 * 7/8 of the bytes."""
    step = all_reduces(8, (range(8), 1e9))
    place = cluster(4, 2, 4)
    designed = wiring_for(step, place)
    assert designed.wiring.cables == ((0, 1, 2), (0, 3, 2), (1, 2, 2), (2, 3, 2))
    use = NetworkUse(designed=designed, transport=Transport())
    fabric = place.wired(designed.wiring)
    run = run_on(step, expand_on(step, fabric, use), fabric, use)
    assert run.trace.makespan == pytest.approx(2 * 7 / 8 * 1e9 / (4 * CABLE), rel=1e-9)


def test_a_step_is_priced_on_the_wiring_that_was_made_for_it(asked: TrainingQuestion) -> None:
    found = answer(asked)
    assert found.statistics.step_time_s > found.statistics.compute_s > 0
    assert found.router == "designed"
    pairs = {(nodes[0], nodes[-1]) for _, nodes in asked.network.designed.routes}
    assert len(pairs) == 8 * 7


def test_the_wiring_that_is_fastest_by_simulation_is_never_slower(
    question: TrainingQuestion, asked: TrainingQuestion
) -> None:
    simulated = wired(question, by_simulation=True)
    assert answer(simulated).statistics.step_time_s <= answer(asked).statistics.step_time_s


def test_its_plan_keeps_the_wiring_and_its_word(asked: TrainingQuestion) -> None:
    found = answer(asked)
    plan = document.loads(document.dumps(plan_of(found)))
    assert plan.designed == asked.network.designed
    assert plan.fabric().hosts == 16
    assert answer(question_of(plan)).statistics.step_time_s == pytest.approx(found.statistics.step_time_s, rel=1e-9)


def test_the_same_step_is_wired_the_same_and_cost_has_the_last_word() -> None:
    step = all_reduces(8, (range(8), 1e9), (range(0, 8, 2), 3e9))
    place, seen = cluster(8, 1, 4), []
    assert wiring_for(step, place) == wiring_for(step, place)

    def cost(designed):
        seen.append(designed)
        return -len(seen)

    assert wiring_for(step, place, cost) == seen[-1]
    assert len(seen) > 1


def test_groups_that_cross_the_heavy_ones_get_cables_as_pairs() -> None:
    """Tensor parallelism over two servers beside data parallelism over four: the pairs are matched."""
    data = [(range(at, 8, 2), 8e9) for at in (0, 1)]
    tensor = [(range(at, at + 2), 4e9) for at in range(0, 8, 2)]
    designed = wiring_for(all_reduces(8, *data, *tensor), cluster(8, 1, 4))
    joined = {cable[:2] for cable in designed.wiring.cables}
    assert {(0, 1), (2, 3), (4, 5), (6, 7)} <= joined
    assert designed.wiring.places == ()


def test_a_ring_that_cannot_go_round_in_its_own_order_is_fixed() -> None:
    inner, outer = GroupSum((0, 1), 1.0), GroupSum((0, 1, 2, 3), 8.0)
    placed, places = on_cosets(Demands(4, (inner, outer), np.zeros((4, 4))), duplex=True)
    assert [group.servers for group in placed.sums] == [(0, 1, 2, 3)]
    assert placed.pairs[places[0], places[1]] == placed.pairs[places[1], places[0]] == 1.0


def test_halves_of_an_all_reduce_and_exchanges_count_as_they_are_sent() -> None:
    sketch = StepSketch(4)
    for act in (Act.ALL_GATHER, Act.REDUCE_SCATTER):
        sketch.collective(act, range(4), 8.0)
    sketch.collective(Act.ALL_TO_ALL, range(4), 8.0)
    sketch.collective(Act.BARRIER, range(4), 0.0)
    halves = demands_of_step(sketch.step(), np.arange(4))
    assert halves.sums == (GroupSum((0, 1, 2, 3), 8.0),)
    assert halves.pairs.tolist() == [[0.0 if a == b else 2.0 for a in range(4)] for b in range(4)]


def test_ranks_that_do_not_fill_the_servers_and_panels_without_room_are_refused() -> None:
    with pytest.raises(StrategyError, match="3 ranks does not fill 4 servers of 2 GPUs: give every GPU a rank, 8"):
        wiring_for(all_reduces(3, (range(3), 1.0)), cluster(4, 2, 2))
    with pytest.raises(StrategyError, match="demands of 3 servers do not fit a cluster of 4"):
        wiring_for(Demands(3, (), np.zeros((3, 3))), cluster(4, 2, 2))
    with pytest.raises(FabricError, match="3 servers cannot all be paired at once"):
        wiring_for(all_reduces(3, (range(3), 1.0)), cluster(3, 1, 2))
