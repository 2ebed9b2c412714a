"""Laws of expansion, over random steps: bytes are those of the programs, waiting is that of the step, in both modes."""

import numpy as np
import pytest
from collective_names import FOR_ALL_ACTS
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.fabric import Dgx
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind
from ropewalk.task.expand import expand
from ropewalk.task.step import Act, Step, StepSketch

FABRIC = Dgx(3, gpus=4, nvlink_bandwidth=16.0, bandwidth=4.0).build()


@st.composite
def homes(draw: st.DrawFn) -> list[int]:
    """Ranks that share a server in the groups below share one: servers in any order, and GPUs within them."""
    servers = draw(st.permutations(range(3)))
    return [4 * server + gpu for server in servers for gpu in draw(st.permutations(range(4)))]


@st.composite
def steps(draw: st.DrawFn, most: int = 10) -> Step:
    """Random operations of 12 ranks; groups of every seating, powers of two, so that every algorithm exists."""
    sketch = StepSketch(12)
    groups = st.sampled_from([[0, 1], [0, 1, 2, 3], [3, 0, 7, 4], [1, 5], [8, 9, 4, 5], [11], [2, 6, 0, 4]])
    for number in range(draw(st.integers(1, most))):
        after = draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)) if number else []
        act, amount = draw(st.sampled_from(Act)), draw(st.sampled_from([0.0, 1.0, 2.0, 6.0]))
        if act is Act.COMPUTE:
            sketch.compute(draw(st.integers(0, 11)), amount, after=after, label=f"compute {number}")
        elif act is Act.SEND:
            rank, peer = draw(st.lists(st.integers(0, 11), min_size=2, max_size=2, unique=True))
            sketch.send(rank, peer, amount, after=after, label=f"send {number}")
        else:
            sketch.collective(act, draw(groups), amount, after=after, label=f"meet {number}")
    return sketch.step()


@given(steps(), st.sampled_from(FOR_ALL_ACTS), st.sampled_from(["fluid", "rounds"]), homes())
def test_every_operation_becomes_its_tasks_and_waits_for_all_tasks_of_those_before(step, family, mode, hosts):
    expansion = expand(step, hosts, FABRIC, collectives=CollectiveChoice(family), mode=mode)
    graph, owner = expansion.graph, expansion.operation_of_task
    graph.check()
    assert np.array_equal(np.unique(owner), np.arange(step.operations))
    moved = graph.kind == TaskKind.TRANSFER
    src, dst = (graph.place[moved], graph.peer[moved]) if moved.any() else (np.array([0]), np.array([1]))
    trace = simulate(graph, shortest(FABRIC, src, dst), symmetry=False)
    begins = np.full(step.operations, np.inf)
    ends = np.zeros(step.operations)
    np.minimum.at(begins, owner, trace.start)
    np.maximum.at(ends, owner, trace.end)
    waiting = np.repeat(np.arange(step.operations), np.diff(step.dep_start))
    assert (begins[waiting] >= ends[step.dep] - 1e-9).all()


@given(steps(), st.sampled_from(FOR_ALL_ACTS), homes())
def test_both_modes_carry_the_same_bytes_between_the_same_hosts_for_every_operation(step, family, hosts):
    carried = []
    for mode in ("fluid", "rounds"):
        expansion = expand(step, hosts, FABRIC, collectives=CollectiveChoice(family), mode=mode)
        graph = expansion.graph
        moved = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        key = (expansion.operation_of_task[moved].astype(np.int64) * 12 + graph.place[moved]) * 12 + graph.peer[moved]
        carried.append(np.bincount(key, weights=graph.amount[moved], minlength=step.operations * 144))
    assert carried[0] == pytest.approx(carried[1])


@given(steps(), st.permutations(range(12)))
def test_every_rank_sends_and_receives_what_its_collective_needs_at_least(step, hosts):
    """Ring programs are optimal: the bytes that each member sends are exactly the lower bound of its collective."""
    expansion = expand(step, hosts, FABRIC)
    graph, host = expansion.graph, np.asarray(hosts)
    for operation in np.flatnonzero(step.act >= Act.ALL_REDUCE).tolist():
        members = host[step.groups[step.group[operation]]]
        mine = (expansion.operation_of_task == operation) & (graph.kind == TaskKind.TRANSFER)
        sent = np.bincount(graph.place[mine], graph.amount[mine], minlength=12)[members]
        received = np.bincount(graph.peer[mine], graph.amount[mine], minlength=12)[members]
        size, n = step.amount[operation], len(members)
        part = {
            Act.ALL_REDUCE: 2 * (n - 1) / n, Act.ALL_GATHER: (n - 1) / n, Act.REDUCE_SCATTER: (n - 1) / n,
            Act.ALL_TO_ALL: (n - 1) / n,
        }  # fmt: skip
        act = Act(int(step.act[operation]))
        if act in part:
            assert sent == pytest.approx(np.full(n, part[act] * size))
            assert received == pytest.approx(np.full(n, part[act] * size))
        elif act is Act.BARRIER or n == 1:
            assert not sent.any()
        elif act is Act.BROADCAST:
            assert received == pytest.approx(np.r_[0.0, np.full(n - 1, size)])
        else:
            assert sent == pytest.approx(np.r_[0.0, np.full(n - 1, size)])
