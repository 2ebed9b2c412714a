"""A step becomes tasks: who waits for whom, how many bytes go where, what bad input says."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.errors import GraphError
from ropewalk.fabric import Dgx, IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind
from ropewalk.task.expand import Expansion, expand
from ropewalk.task.step import Act, StepSketch
from ropewalk.task.transport import Transport


def seconds(expansion: Expansion, fabric) -> float:
    if not (expansion.graph.kind == TaskKind.TRANSFER).any():
        return simulate(expansion.graph, shortest(fabric, np.array([0]), np.array([1]))).makespan
    return simulate(expansion.graph, shortest(fabric, *expansion.pairs())).makespan


def one_collective(act: Act, group, size_bytes: float, ranks: int):
    sketch = StepSketch(ranks)
    sketch.collective(act, group, size_bytes)
    return sketch.step()


def test_computes_and_sends_keep_their_columns_and_a_collective_stands_between_two_markers():
    sketch = StepSketch(2)
    forward = [sketch.compute(rank, 1e-3 * (rank + 1), priority=rank, label="forward") for rank in range(2)]
    meet = sketch.collective(Act.ALL_REDUCE, [0, 1], 8e6, after=forward, priority=3, label="sum")
    sketch.send(1, 0, 5e6, after=[meet], label="boundary")
    expansion = expand(sketch.step(), [1, 0], IdealSwitch(2).build())
    graph = expansion.graph
    graph.check()
    kinds = [TaskKind(kind).name for kind in graph.kind.tolist()]
    assert kinds == ["COMPUTE", "COMPUTE", "MARKER", "TRANSFER", "TRANSFER", "MARKER", "TRANSFER"]
    assert expansion.operation_of_task.tolist() == [0, 1, 2, 2, 2, 2, 3]
    assert graph.place.tolist() == [1, 0, -1, 1, 0, -1, 0]
    assert graph.peer.tolist() == [-1, -1, -1, 0, 1, -1, 1]
    assert graph.amount.tolist() == [1e-3, 2e-3, 0.0, 8e6, 8e6, 0.0, 5e6]
    assert graph.priority.tolist() == [0, 1, 3, 3, 3, 3, 0]
    assert [graph.name_of(task) for task in range(7)] == ["forward"] * 2 + ["sum"] * 4 + ["boundary"]
    waits = [graph.dep[a:b].tolist() for a, b in zip(graph.dep_start[:-1], graph.dep_start[1:], strict=True)]
    assert waits == [[], [], [0, 1], [2], [2], [3, 4], [5]]


def test_a_ring_all_reduce_takes_two_n_minus_one_over_n():
    fabric = IdealSwitch(4, bandwidth=1e9).build()
    step = one_collective(Act.ALL_REDUCE, range(4), 8e6, 4)
    for mode in ("fluid", "rounds"):
        assert seconds(expand(step, range(4), fabric, mode=mode), fabric) == pytest.approx(12e-3, rel=1e-12)


@pytest.mark.parametrize(
    ("act", "times"),
    [
        (Act.ALL_GATHER, 3 / 4),
        (Act.REDUCE_SCATTER, 3 / 4),
        (Act.ALL_TO_ALL, 3 / 4),
        (Act.BROADCAST, 1),
        (Act.REDUCE, 1),
    ],
)
def test_other_collectives_move_what_their_bytes_say(act, times):
    fabric = IdealSwitch(4, bandwidth=1e9).build()
    step = one_collective(act, range(4), 8e6, 4)
    assert seconds(expand(step, range(4), fabric), fabric) == pytest.approx(8e-3 * times, rel=1e-12)


@pytest.mark.parametrize("servers", [2, 3])
def test_over_servers_every_nic_carries_its_part_of_the_rings(servers):
    fabric = Dgx(servers, gpus=4, nvlink_bandwidth=1e12, bandwidth=1e9).build()
    ranks = 4 * servers
    step = one_collective(Act.ALL_REDUCE, range(ranks), 16e6, ranks)
    expansion = expand(step, range(ranks), fabric)
    trace = simulate(expansion.graph, shortest(fabric, *expansion.pairs()))
    # Each of the 4 NICs of a server sends a quarter of what one ring would have to send: 2(N-1)/N of the buffer.
    assert trace.makespan == pytest.approx(2 * (ranks - 1) / ranks * 16e-3 / 4, rel=1e-12)
    nics = fabric.link_src[(fabric.level[fabric.link_dst] == 2) & (fabric.level[fabric.link_src] == 0)]
    busy = trace.link_bytes[(fabric.level[fabric.link_dst] == 2) & (fabric.level[fabric.link_src] == 0)]
    assert len(nics) == ranks
    assert busy == pytest.approx(np.full(ranks, busy[0]))


def test_a_group_in_mixed_order_is_seated_server_by_server():
    fabric = Dgx(2, gpus=2, nvlink_bandwidth=1e12, bandwidth=1e9).build()
    step = one_collective(Act.ALL_REDUCE, [3, 0, 2, 1], 16e6, 4)
    graph = expand(step, range(4), fabric).graph
    across = (graph.kind == TaskKind.TRANSFER) & (graph.place // 2 != graph.peer // 2)
    assert sorted(graph.place[across].tolist()) == [0, 1, 2, 3]
    assert sorted(graph.peer[across].tolist()) == [0, 1, 2, 3]


def test_the_root_is_the_first_rank_of_the_group():
    step = one_collective(Act.BROADCAST, [2, 0, 1], 6e6, 3)
    graph = expand(step, range(3), IdealSwitch(3).build()).graph
    assert set(graph.peer[graph.kind == TaskKind.TRANSFER].tolist()) == {0, 1}
    step = one_collective(Act.REDUCE, [2, 0, 1], 6e6, 3)
    graph = expand(step, range(3), IdealSwitch(3).build()).graph
    assert set(graph.place[graph.kind == TaskKind.TRANSFER].tolist()) == {0, 1}


@pytest.mark.parametrize(("act", "group"), [(Act.ALL_REDUCE, [1]), (Act.BARRIER, [0, 1, 2])])
def test_a_group_of_one_and_a_barrier_take_no_time_but_are_waited_for(act, group):
    sketch = StepSketch(3)
    slow = sketch.compute(group[0], 2.0)
    met = sketch.collective(act, group, 1e9, after=[slow])
    sketch.compute(group[-1], 1.0, after=[met])
    fabric = IdealSwitch(3).build()
    expansion = expand(sketch.step(), range(3), fabric, transport=Transport(start_up_s=5.0, round_across_s=1.0))
    assert expansion.graph.tasks == 3
    assert seconds(expansion, fabric) == 3.0


def test_start_up_is_paid_once_and_alpha_once_a_round():
    fabric = Dgx(2, gpus=2, nvlink_bandwidth=1e9, bandwidth=1e9).build()
    costs = Transport(start_up_s=1.0, round_inside_s=0.01, round_across_s=0.1)
    inside = one_collective(Act.ALL_REDUCE, [0, 1], 4e6, 4)
    across = one_collective(Act.ALL_REDUCE, [0, 2], 4e6, 4)
    for mode in ("fluid", "rounds"):
        found = seconds(expand(inside, range(4), fabric, transport=costs, mode=mode), fabric)
        assert found == pytest.approx(1.0 + 2 * 0.01 + 4e-3, rel=1e-12)
        found = seconds(expand(across, range(4), fabric, transport=costs, mode=mode), fabric)
        assert found == pytest.approx(1.0 + 2 * 0.1 + 4e-3, rel=1e-12)
    sketch = StepSketch(4)
    sketch.send(1, 3, 4e6)
    assert seconds(expand(sketch.step(), range(4), fabric, transport=costs), fabric) == pytest.approx(1.104, rel=1e-12)


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_an_operation_that_stands_for_three_takes_the_time_of_three_in_a_row(mode):
    fabric = IdealSwitch(4, bandwidth=1e9, latency=1e-3).build()
    costs = Transport(start_up_s=0.5, round_across_s=0.01)
    for act in (Act.ALL_REDUCE, Act.SEND):
        together, apart = StepSketch(4), StepSketch(4)
        before: list[int] = []
        for _ in range(3):
            if act is Act.SEND:
                before = [apart.send(0, 1, 2e6, after=before)]
            else:
                before = [apart.collective(act, range(4), 2e6, after=before)]
        if act is Act.SEND:
            together.send(0, 1, 6e6)
        else:
            together.collective(act, range(4), 6e6)
        steps = replace(together.step(), repeats=np.array([3], np.int32)), apart.step()
        times = []
        for step in steps:
            expansion = expand(step, range(4), fabric, transport=costs, mode=mode)
            routes = shortest(fabric, *expansion.pairs())
            times.append(simulate(expansion.with_path_latency(routes).graph, routes).makespan)
        assert times[0] == pytest.approx(times[1], rel=1e-12)


def test_a_protocol_that_fills_the_wire_to_three_quarters_takes_four_thirds_of_the_time():
    fabric = Dgx(2, gpus=2, nvlink_bandwidth=1e9, bandwidth=1e9).build()
    costs = Transport(efficiency_inside=0.75, efficiency_across=0.5)
    inside = one_collective(Act.ALL_REDUCE, [0, 1], 6e6, 4)
    across = one_collective(Act.ALL_REDUCE, [0, 2], 6e6, 4)
    for mode in ("fluid", "rounds"):
        found = seconds(expand(inside, range(4), fabric, transport=costs, mode=mode), fabric)
        assert found == pytest.approx(8e-3, rel=1e-12)
        found = seconds(expand(across, range(4), fabric, transport=costs, mode=mode), fabric)
        assert found == pytest.approx(12e-3, rel=1e-12)
    expansion = expand(inside, range(4), fabric, transport=costs)
    trace = simulate(expansion.graph, shortest(fabric, *expansion.pairs()))
    assert (trace.bound_by[expansion.graph.kind == TaskKind.TRANSFER] >= 0).all()


def test_a_cap_holds_a_lone_flow_back():
    fabric = Dgx(2, gpus=2, nvlink_bandwidth=1e9, bandwidth=1e9).build()
    step = one_collective(Act.ALL_REDUCE, [0, 1], 8e6, 4)
    capped = Transport(cap_inside=0.25e9, cap_across=1.0)
    assert seconds(expand(step, range(4), fabric, transport=capped), fabric) == pytest.approx(32e-3, rel=1e-12)
    graph = expand(step, range(4), fabric, transport=capped).graph
    assert graph.rate_cap.tolist() == [math.inf, 0.25e9, 0.25e9, math.inf]


@pytest.mark.parametrize(("ranks", "act"), [(4, Act.ALL_REDUCE), (3, Act.ALL_GATHER), (4, Act.BROADCAST)])
def test_latency_of_the_path_is_paid_in_every_round_of_a_fluid_collective_too(ranks, act):
    fabric = IdealSwitch(ranks, bandwidth=1e9, latency=1e-3).build()
    step = one_collective(act, range(ranks), 0.0, ranks)
    written = expand(step, range(ranks), fabric, mode="rounds")
    poured = expand(step, range(ranks), fabric)
    routes = shortest(fabric, *written.pairs())
    expected = simulate(written.graph, routes).makespan
    assert np.array_equal(written.with_path_latency(routes).graph.start_up, written.graph.start_up)
    assert simulate(poured.with_path_latency(routes).graph, routes).makespan == pytest.approx(expected, rel=1e-12)
    assert simulate(poured.graph, routes).makespan == pytest.approx(2e-3, rel=1e-12)


def test_a_hierarchy_owes_the_latency_of_each_level_for_the_rounds_of_that_level():
    fabric = Dgx(2, gpus=2, latency=1e-3).build()
    step = one_collective(Act.ALL_REDUCE, range(4), 0.0, 4)
    hierarchical = CollectiveChoice("hierarchical")
    times = {}
    for mode in ("fluid", "rounds"):
        expansion = expand(step, range(4), fabric, collectives=hierarchical, mode=mode)
        routes = shortest(fabric, *expansion.pairs())
        times[mode] = simulate(expansion.with_path_latency(routes).graph, routes).makespan
    # Two rounds inside and two across, two links of a millisecond each.
    assert times == pytest.approx({"fluid": 8e-3, "rounds": 8e-3}, rel=1e-12)


def test_hierarchies_overlap_their_levels_when_poured_and_take_turns_when_written_out():
    fabric = Dgx(2, gpus=2, nvlink_bandwidth=1e9, bandwidth=1e9).build()
    step = one_collective(Act.ALL_REDUCE, range(4), 4e6, 4)
    hierarchical = CollectiveChoice("hierarchical")
    poured = seconds(expand(step, range(4), fabric, collectives=hierarchical), fabric)
    written = seconds(expand(step, range(4), fabric, collectives=hierarchical, mode="rounds"), fabric)
    assert poured == pytest.approx(4e-3, rel=1e-12)  # the larger of 4 MB inside and 2 MB across
    assert written == pytest.approx(6e-3, rel=1e-12)  # their sum


@pytest.mark.parametrize(
    ("hosts", "options", "message"),
    [
        ([0, 1], {}, "2 hosts are given"),
        ([0, 1, 9], {}, "host 9 does not exist"),
        ([0, 1, 1], {}, "share a host"),
        ([0, 1, 2], {"mode": "packets"}, "no mode 'packets'.*choose fluid, rounds"),
    ],
)
def test_what_does_not_fit_is_refused(hosts, options, message):
    step = one_collective(Act.ALL_REDUCE, range(3), 1e6, 3)
    with pytest.raises(GraphError, match=message):
        expand(step, hosts, IdealSwitch(4).build(), **options)


def test_an_algorithm_that_does_not_exist_for_a_group_says_so():
    step = one_collective(Act.ALL_GATHER, range(3), 1e6, 3)
    with pytest.raises(GraphError, match=r"all-gather of 3 ranks: .*halving-doubling.* power of two .*use one of ring"):
        expand(step, range(3), IdealSwitch(4).build(), collectives=CollectiveChoice("halving-doubling"))


def test_a_transport_that_cannot_be_lists_every_finding():
    with pytest.raises(GraphError, match=r"start_up_s is -1[\s\S]*efficiency_inside is 0[\s\S]*cap_across is nan"):
        Transport(start_up_s=-1.0, efficiency_inside=0.0, cap_across=math.nan)


def test_an_empty_step_is_an_empty_graph():
    assert expand(StepSketch(2).step(), range(2), IdealSwitch(2).build()).graph.tasks == 0
