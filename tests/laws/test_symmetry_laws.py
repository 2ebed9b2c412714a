"""Laws of exact symmetry: the quotient has the times of the whole, whether there is much symmetry or none."""

import numpy as np
import pytest
from collective_names import PUBLISHED
from flow_worlds import graphs, routed, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.collectives import ring_all_reduce
from ropewalk.collectives.act import Act
from ropewalk.collectives.table import program_on
from ropewalk.fabric import BCube, Builder, FatTree, Hypercube, IdealSwitch, LeafSpine, Mesh, RandomRegular, Ring, Torus
from ropewalk.routing import Routes, default_router_name
from ropewalk.sim.flow.symmetry import fold
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.sim.simulate import simulate, simulate_rounds
from ropewalk.task import TaskGraph, TaskKind, lockstep, make_graph, unroll

SAME = 1e-12


def check_folding(graph: TaskGraph, routes: Routes) -> int:
    """Compare the quotient with the whole; returns the number of task classes."""
    system = system_of(graph, routes)
    plain = run_system(system)
    folding = fold(system)
    times = run_system(folding.quotient)
    # Things at time zero are exactly there in both.
    np.testing.assert_allclose(times.end[folding.task_class], plain.end, rtol=SAME, atol=0)
    np.testing.assert_allclose(times.start[folding.task_class], plain.start, rtol=SAME, atol=0)
    return folding.quotient.tasks


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_folding_random_graphs_changes_no_time(world: tuple[TaskGraph, Routes]) -> None:
    check_folding(*world)


def translated(graph: TaskGraph, shape: tuple[int, ...]) -> TaskGraph:
    """A copy of the graph at every place of the torus, task by task side by side."""
    copies = int(np.prod(shape))
    offset = np.array(np.unravel_index(np.arange(copies), shape))

    def moved(host: np.ndarray) -> np.ndarray:
        at = (np.array(np.unravel_index(np.maximum(host, 0), shape))[:, :, None] + offset[:, None, :]).swapaxes(0, 2)
        return np.where(host[:, None] >= 0, np.ravel_multi_index(tuple((at % shape).T), shape), -1).ravel()

    columns = {name: np.repeat(getattr(graph, name), copies) for name in ("stream", "start_up", "priority", "rate_cap")}
    deps = np.repeat(np.diff(graph.dep_start), copies)
    rows = [graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]] for task in range(graph.tasks)]
    dep = [int(waited) * copies + copy for row in rows for copy in range(copies) for waited in row]
    return make_graph(
        np.repeat(graph.kind, copies),
        moved(graph.place),
        moved(graph.peer),
        np.repeat(graph.amount, copies),
        np.cumsum([0, *deps]),
        dep,
        **columns,
    )


@settings(max_examples=60, deadline=None)
@given(graphs(9, most=8), st.sampled_from(["dimension", "dimension-rotated"]))
def test_copies_at_every_place_of_a_torus_cost_no_more_than_one(graph: TaskGraph, router: str) -> None:
    fabric = Torus((3, 3), bandwidth=2.0, latency=0.125).build()
    everywhere = translated(graph, (3, 3))
    everywhere.check()
    assert everywhere.tasks == 9 * graph.tasks
    assert check_folding(everywhere, routed(everywhere, fabric, router)) <= graph.tasks


@pytest.mark.parametrize("hosts", [2, 3, 8, 17])
def test_a_ring_on_a_ring_has_one_class_a_round(hosts: int) -> None:
    program = ring_all_reduce([np.arange(hosts)])
    graph = unroll(lockstep(program, 1000.0 * hosts, 0.5))
    classes = check_folding(graph, routed(graph, Ring(hosts, bandwidth=100.0).build(), "shortest"))
    assert classes == len(program.rounds) == 2 * (hosts - 1)


SYMMETRIC: list[Builder] = [
    Ring(6),
    IdealSwitch(5),
    Torus((4, 4)),
    Torus((3, 5)),
    BCube(3, 2),
    FatTree(4),
    Hypercube(3),
]


@pytest.mark.parametrize("builder", SYMMETRIC, ids=lambda builder: builder.expression)
@pytest.mark.parametrize("name", ["ring", "mesh", "hips"])
def test_collectives_on_symmetric_fabrics_fold_without_changing_a_time(name: str, builder: Builder) -> None:
    fabric = builder.build()
    graph = unroll(lockstep(program_on(fabric, name), 1e9, 1e-5))
    classes = check_folding(graph, routed(graph, fabric, default_router_name(fabric)))
    assert classes <= graph.tasks / 2


UNEVEN: list[Builder] = [Mesh((3, 4)), LeafSpine(3, 2, 3, cables=2), RandomRegular(8, 3, seed=1), Ring(7)]


@pytest.mark.parametrize("builder", UNEVEN, ids=lambda builder: builder.expression)
@pytest.mark.parametrize("router", ["shortest", "ecmp"])
@pytest.mark.parametrize("name", ["ring-one-way", "double-tree", "halving-doubling", "ps", "ps-dedicated"])
def test_collectives_on_uneven_fabrics_fold_without_changing_a_time(name: str, router: str, builder: Builder) -> None:
    fabric = builder.build()
    graph = unroll(lockstep(program_on(fabric, name), 1e9, 1e-5))
    assert check_folding(graph, routed(graph, fabric, router)) > 1


@pytest.mark.parametrize("name", ["shift", "xor", "direct", "hierarchical"])
def test_all_to_alls_fold_without_changing_a_time(name: str) -> None:
    fabric = FatTree(4).build()
    graph = unroll(lockstep(program_on(fabric, name, Act.ALL_TO_ALL), 1e9))
    assert check_folding(graph, routed(graph, fabric, "spray")) < graph.tasks


def test_what_differs_in_one_byte_stays_apart() -> None:
    ends = np.arange(4, dtype=np.int32)
    graph = make_graph(
        [TaskKind.TRANSFER] * 4,
        ends,
        (ends + 1) % 4,
        [8.0, 8.0, 8.0, 9.0],
        np.zeros(5, np.int64),
        np.zeros(0, np.int64),
    )
    assert check_folding(graph, routed(graph, Ring(4, bandwidth=2.0).build(), "shortest")) == 2


@pytest.mark.parametrize("builder", [*SYMMETRIC, *UNEVEN], ids=lambda builder: builder.expression)
@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_rounds_folded_before_they_are_written_out_take_the_same_time(name: str, builder: Builder) -> None:
    fabric = builder.build()
    rounds = lockstep(program_on(fabric, name), 1e9, 1e-5)
    routes = routed(unroll(rounds), fabric, default_router_name(fabric))
    folded, plain = (simulate_rounds(rounds, routes, symmetry=symmetry) for symmetry in (True, False))
    assert folded.makespan == pytest.approx(plain.makespan, rel=SAME)
    assert 1 <= folded.classes <= plain.classes


@settings(max_examples=40, deadline=None)
@given(graphs(9, most=8))
def test_a_trace_by_symmetry_says_the_same_as_the_plain_one(graph: TaskGraph) -> None:
    fabric = Torus((3, 3), bandwidth=2.0).build()
    everywhere = translated(graph, (3, 3))
    routes = routed(everywhere, fabric, "dimension")
    folded, plain = (simulate(everywhere, routes, symmetry=symmetry) for symmetry in (True, False))
    np.testing.assert_allclose(folded.end, plain.end, rtol=SAME, atol=0)
    np.testing.assert_allclose(folded.start, plain.start, rtol=SAME, atol=0)
    assert np.array_equal(folded.link_bytes, plain.link_bytes)
    assert folded.classes <= graph.tasks
    assert np.array_equal(folded.bound_by >= 0, plain.bound_by >= 0)
    for task in np.flatnonzero(folded.bound_by >= 0):
        # A bottleneck is a link on the task's own way.
        pair = int(routes.find(everywhere.place[task], everywhere.peer[task])[0])
        start, link, _ = routes.usage()
        assert folded.bound_by[task] in link[start[pair] : start[pair + 1]]
