"""Rounds in lockstep written out: who waits for whom, by hand and against a slow way of saying the same."""

import numpy as np
import pytest
from collective_names import PUBLISHED
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.collectives import (
    binomial_reduce,
    direct_all_to_all,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_reduce,
)
from ropewalk.collectives.table import program_on
from ropewalk.errors import GraphError
from ropewalk.fabric import Torus
from ropewalk.task import TaskGraph, TaskKind, lockstep, unroll, write_out

Round = list[tuple[int, int]]
"""The arrows of a round: (source slot, destination slot)."""


def waits(graph: TaskGraph) -> list[list[int]]:
    return [sorted(graph.dep[graph.dep_start[t] : graph.dep_start[t + 1]].tolist()) for t in range(graph.tasks)]


def test_a_ring_waits_for_what_it_sent_and_what_it_received() -> None:
    graph = unroll(lockstep(ring_all_reduce([[0, 1, 2]]), 9.0, 0.25))
    graph.check()
    # Three ranks, four rounds; task 3r + i is the transfer of rank i to rank i+1 in round r.
    assert graph.kind.tolist() == [TaskKind.TRANSFER] * 12
    assert graph.place.tolist() == [0, 1, 2] * 4
    assert graph.peer.tolist() == [1, 2, 0] * 4
    assert graph.amount.tolist() == [3.0] * 12
    assert graph.start_up.tolist() == [0.25] * 12
    assert waits(graph)[:6] == [[], [], [], [0, 2], [0, 1], [1, 2]]
    assert waits(graph)[9:] == [[6, 8], [6, 7], [7, 8]]


def test_a_mesh_of_three_goes_through_one_marker_a_rank() -> None:
    graph = unroll(lockstep(mesh_all_reduce(3), 3.0))
    # In round one each rank sends two and receives two: 4 waits · 2 sends = 8 > 4 + 2 = 6, so a marker is cheaper.
    assert graph.kind.tolist() == [TaskKind.TRANSFER] * 6 + [TaskKind.MARKER] * 3 + [TaskKind.TRANSFER] * 6
    ends = list(zip(graph.place.tolist(), graph.peer.tolist(), strict=True))
    for rank in range(3):
        touched = [task for task in range(6) if rank in ends[task]]
        assert waits(graph)[6 + rank] == touched
    for task in range(9, 15):
        assert waits(graph)[task] == [6 + ends[task][0]]


def test_two_ranks_need_no_marker() -> None:
    graph = unroll(lockstep(mesh_all_reduce(2), 2.0))
    assert graph.kind.tolist() == [TaskKind.TRANSFER] * 4
    assert waits(graph) == [[], [], [0, 1], [0, 1]]


def test_who_only_receives_in_a_round_still_waits_for_the_rounds_before() -> None:
    """Rank 0 of a binomial reduction receives in every round; what comes after waits for all of them."""
    reduce = binomial_reduce(4)
    ends = [(p.src.astype(np.int64), p.dst.astype(np.int64)) for p in reduce.patterns]
    back = (np.array([0]), np.array([3]))
    steps = write_out(4, [*ends, back], np.arange(len(ends) + 1))
    received = [i for i, arrow in enumerate(steps.arrow[:-1]) if np.concatenate([dst for _, dst in ends])[arrow] == 0]
    assert len(received) == 2
    assert sorted(steps.dep[steps.dep_start[-2] :].tolist()) == received


def test_lanes_of_a_rank_do_not_wait_for_each_other() -> None:
    graph = unroll(lockstep(ring_all_reduce([[0, 1, 2]], both_ways=True), 12.0))
    ends = list(zip(graph.place.tolist(), graph.peer.tolist(), strict=True))
    clockwise = {(0, 1), (1, 2), (2, 0)}
    assert len(ends) == 24
    for task, waited in enumerate(waits(graph)):
        assert all((ends[other] in clockwise) == (ends[task] in clockwise) for other in waited)


def test_ranks_can_run_on_other_hosts() -> None:
    graph = unroll(lockstep(ring_all_reduce([[0, 1, 2]]), 3.0, hosts=np.array([5, 7, 2], np.int32)))
    assert graph.place[:3].tolist() == [5, 7, 2]
    assert graph.peer[:3].tolist() == [7, 2, 5]
    with pytest.raises(GraphError, match="has 3 ranks, but only 2 hosts"):
        lockstep(ring_all_reduce([[0, 1, 2]]), 3.0, hosts=np.array([5, 7], np.int32))


def test_an_all_to_all_sends_a_rank_its_part_of_the_buffer() -> None:
    """Every rank holds P bytes, an Nth of them for each rank."""
    graph = unroll(lockstep(direct_all_to_all(4), 100.0))
    sent = np.bincount(graph.place, weights=graph.amount)
    assert sent == pytest.approx([75.0] * 4)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_every_byte_of_the_program_is_in_the_graph(name: str) -> None:
    program = program_on(Torus((2, 4)).build(), name)
    rolled = lockstep(program, 840.0)
    graph = unroll(rolled)
    graph.check()
    moved = graph.kind == TaskKind.TRANSFER
    assert int(moved.sum()) == rolled.transfers == sum(step.pattern.sends for step in program.rounds)
    assert rolled.rounds == len(program.rounds)
    assert graph.amount.sum() == pytest.approx(840.0 * program.sent_chunks().sum() / program.chunks)


def in_arrays(arrows: Round) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.array(arrows, np.int64).T
    return src, dst


def naive(rounds: list[Round]) -> list[set[int]]:
    """All transfers that must be done before each transfer: everything its sender did in earlier rounds, and so on."""
    before: list[set[int]] = []
    touched: dict[int, set[int]] = {}
    for arrows in rounds:
        first = len(before)
        for src, _ in arrows:
            direct = touched.get(src, set())
            before.append(direct | {earlier for task in direct for earlier in before[task]})
        for number, arrow in enumerate(arrows):
            for slot in arrow:
                touched[slot] = touched.get(slot, set()) | {first + number}
    return before


def closure(rounds: list[Round], order: list[int]) -> list[set[int]]:
    """The same from the task graph, markers left out."""
    steps = write_out(5, [in_arrays(arrows) for arrows in rounds], np.array(order))
    number = np.cumsum(steps.arrow >= 0) - 1
    before: list[set[int]] = []
    for task in range(len(steps.arrow)):
        row = steps.dep[steps.dep_start[task] : steps.dep_start[task + 1]]
        own = {int(number[dep]) for dep in row if steps.arrow[dep] >= 0}
        before.append(own.union(*(before[dep] for dep in row)))
    return [done for done, arrow in zip(before, steps.arrow, strict=True) if arrow >= 0]


slots = st.integers(0, 4)
arrows_of_a_round = st.lists(
    st.tuples(slots, slots).filter(lambda arrow: arrow[0] != arrow[1]), min_size=1, max_size=8, unique=True
)


@settings(max_examples=150, deadline=None)
@given(st.lists(arrows_of_a_round, min_size=1, max_size=4), st.data())
def test_a_transfer_waits_for_exactly_what_its_sender_did_before(kinds: list[Round], data: st.DataObject) -> None:
    order = data.draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=7))
    assert closure(kinds, order) == naive([kinds[kind] for kind in order])


@settings(max_examples=150, deadline=None)
@given(st.lists(arrows_of_a_round, min_size=1, max_size=3), st.data())
def test_repeated_rounds_are_written_as_if_one_by_one(kinds: list[Round], data: st.DataObject) -> None:
    runs = data.draw(st.lists(st.tuples(st.integers(0, len(kinds) - 1), st.integers(1, 4)), min_size=1, max_size=4))
    order = [kind for kind, times in runs for _ in range(times)]
    rolled = write_out(5, [in_arrays(arrows) for arrows in kinds], np.array(order))
    # Every round a set of arrows of its own: nothing can be recognised as repeated.
    single = write_out(5, [in_arrays(kinds[kind]) for kind in order], np.arange(len(order)))
    assert np.array_equal(rolled.dep_start, single.dep_start)
    rows = zip(rolled.dep_start, rolled.dep_start[1:], strict=False)
    assert all(sorted(rolled.dep[a:b]) == sorted(single.dep[a:b]) for a, b in rows)
    assert np.array_equal(rolled.arrow >= 0, single.arrow >= 0)


@pytest.mark.parametrize("ranks", [3, 4, 7, 8])
def test_markers_stand_only_where_they_save_dependencies(ranks: int) -> None:
    for program in (mesh_all_reduce(ranks), halving_doubling_all_reduce(ranks), ring_all_reduce([np.arange(ranks)])):
        graph = unroll(lockstep(program, 1.0))
        followers = np.bincount(graph.dep, minlength=graph.tasks)
        for marker in np.flatnonzero(graph.kind == TaskKind.MARKER):
            through = int(graph.dep_start[marker + 1] - graph.dep_start[marker])
            assert through * followers[marker] > through + followers[marker]
