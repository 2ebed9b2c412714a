"""Task graph files: columns that come back exactly, and files that people wrote, refused with every mistake at once."""

from pathlib import Path

import numpy as np
import pytest
from flow_worlds import graphs
from hypothesis import given, settings

from ropewalk.collectives import ring_all_reduce
from ropewalk.errors import GraphError, InputError
from ropewalk.fabric import IdealSwitch, Torus
from ropewalk.routing import shortest
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.task import Sketch, TaskGraph, TaskKind, lockstep, make_graph, unroll
from ropewalk.task.files import COLUMNS, from_json, from_yaml, load, save

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-layer-step.yaml"


def same(one: TaskGraph, other: TaskGraph) -> bool:
    return one.labels == other.labels and all(
        getattr(one, name).dtype == getattr(other, name).dtype
        and np.array_equal(getattr(one, name), getattr(other, name))
        for name in COLUMNS
    )


def findings(text: str, **options: object) -> str:
    with pytest.raises(GraphError) as refusal:
        from_yaml(text, "step.yaml", **options)  # type: ignore[arg-type]
    return str(refusal.value)


# Columns


@settings(max_examples=40, deadline=None)
@given(graph=graphs(6))
def test_columns_come_back_exactly(graph: TaskGraph, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("graphs") / "graph.npz"
    save(graph, path)
    assert same(load(path), graph)


def test_a_collective_and_an_empty_graph_come_back_exactly(tmp_path: Path) -> None:
    for graph in (unroll(lockstep(ring_all_reduce([np.arange(5)]), 1e9 / 3, 1e-5)), Sketch().graph()):
        save(graph, tmp_path / "graph.npz")
        assert same(load(tmp_path / "graph.npz"), graph)


def test_labels_of_any_sign_come_back(tmp_path: Path) -> None:
    sketch = Sketch()
    for label in ("späte Schicht", "層 3", "nul\0", ""):
        sketch.marker(label=label)
    save(sketch.graph(), tmp_path / "graph.npz")
    assert load(tmp_path / "graph.npz").labels == ("späte Schicht", "層 3", "nul\0", "")


def test_the_same_graph_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        save(unroll(lockstep(ring_all_reduce([np.arange(5)]), 1e9)), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_columns_that_are_not_a_task_graph_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(b"not a zip file")
    with pytest.raises(GraphError, match="is incomplete"):
        load(path)
    np.savez(path, kind=np.zeros(1, np.int8))
    with pytest.raises(GraphError, match="lacks the columns labels, place"):
        load(path)
    np.savez(path, labels=np.array([object()]), **{name: np.zeros(1, dtype) for name, dtype in COLUMNS.items()})
    with pytest.raises(GraphError, match="is incomplete"):
        load(path)


def test_columns_that_cannot_run_are_refused(tmp_path: Path) -> None:
    sketch = Sketch()
    sketch.compute(0, 1.0)
    graph = sketch.graph()
    columns = {name: getattr(graph, name) for name in COLUMNS} | {"labels": np.frombuffer(b'["compute"]', np.uint8)}
    np.savez(tmp_path / "graph.npz", **(columns | {"amount": np.array([-1.0])}))
    with pytest.raises(GraphError, match="negative or infinite amount"):
        load(tmp_path / "graph.npz")
    np.savez(tmp_path / "graph.npz", **(columns | {"amount": np.array([1], np.int32)}))
    with pytest.raises(GraphError, match="the column amount is int32, not float64"):
        load(tmp_path / "graph.npz")


def test_a_graph_is_saved_as_columns_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"graphs are saved as \.npz"):
        save(Sketch().graph(), tmp_path / "graph.yaml")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="choose another path"):
        save(Sketch().graph(), tmp_path / "file" / "graph.npz")


# What people write


def test_a_file_becomes_a_graph() -> None:
    graph = from_yaml("""
        description: a step
        tasks:
        - {name: f0, compute: 2ms, gpu: 3, stream: 1, priority: 4}
        - {name: t0, transfer: 1MB, from: 0, to: 1, after: [f0], priority: 1, start_up: 10us, rate_cap: 10Gbps}
        - {transfer: 0B, from: 1, to: 0, after: f0}
        - {name: j, marker: true, after: [f0, t0]}
    """)
    assert graph.kind.tolist() == [TaskKind.COMPUTE, TaskKind.TRANSFER, TaskKind.TRANSFER, TaskKind.MARKER]
    assert graph.amount.tolist() == [2e-3, 1e6, 0.0, 0.0]
    assert graph.place.tolist() == [3, 0, 1, -1]
    assert graph.peer.tolist() == [-1, 1, 0, -1]
    assert graph.stream.tolist() == [1, 0, 0, 0]
    assert graph.priority.tolist() == [4, 1, 0, 0]
    assert graph.start_up.tolist() == [0.0, 1e-5, 0.0, 0.0]
    assert graph.rate_cap.tolist() == [np.inf, 1.25e9, np.inf, np.inf]
    assert [graph.name_of(task) for task in range(4)] == ["f0", "t0", "transfer", "j"]
    assert graph.dep.tolist() == [0, 0, 0, 1]
    assert graph.dep_start.tolist() == [0, 0, 1, 2, 4]


def test_tasks_may_stand_in_any_order() -> None:
    graph = from_yaml("""
        tasks:
        - {name: last, marker: true, after: [middle, first]}
        - {name: middle, compute: 1ms, gpu: 0, after: [first]}
        - {name: lone, compute: 1ms, gpu: 1}
        - {name: first, compute: 1ms, gpu: 0}
    """)
    assert [graph.name_of(task) for task in range(4)] == ["lone", "first", "middle", "last"]
    assert graph.dep.tolist() == [1, 1, 2]


def test_json_says_the_same_as_yaml() -> None:
    text = '{"tasks": [{"name": "t", "transfer": "1MB", "from": 0, "to": 1}, {"marker": true, "after": ["t"]}]}'
    assert same(from_json(text), from_yaml(text))


def test_hosts_can_be_named_where_the_fabric_is_known() -> None:
    fabric = IdealSwitch(3).build()
    text = "tasks: [{transfer: 1MB, from: h2, to: 0}, {compute: 1ms, gpu: h1}]"
    graph = from_yaml(text, fabric=fabric)
    assert graph.place.tolist() == [2, 1]
    assert graph.peer.tolist() == [0, -1]
    assert "give the fabric that has this host" in findings(text)
    assert "'switch', which is not a host of switch:3" in findings(text.replace("h2", "switch"), fabric=fabric)
    assert "from is 3: write a number from 0 to 2 on switch:3" in findings(text.replace("h2", "3"), fabric=fabric)


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        ("{compute: 2, gpu: 0}", "tasks[0]: compute: time '2' has no unit: write it like"),
        ("{compute: 2GB, gpu: 0}", "tasks[0]: compute: time '2GB' has the unknown unit 'GB'"),
        ("{compute: -2ms, gpu: 0}", "tasks[0]: compute: time '-2ms' is negative"),
        ("{compute: true, gpu: 0}", "tasks[0]: compute is True: write a number with its unit"),
        ("{compute: , gpu: 0}", "tasks[0]: compute is empty: write an amount such as 2ms"),
        ("{compute: 2ms}", "tasks[0]: has no gpu: name the gpu"),
        ("{compute: 2ms, gpu: -1}", "tasks[0]: gpu is -1: write a number from 0 to"),
        ("{compute: 2ms, gpu: 0, stream: 70000}", "stream is 70000: write a whole number from 0 to 32767"),
        ("{compute: 2ms, gpu: 0, priority: high}", "priority is 'high': write a whole number from"),
        ("{compute: 2ms, gpu: 0, rate_cap: 1Gbps}", "rate_cap: unknown key of a compute task: use name, compute, gpu"),
        ("{transfer: 1MB, from: 0, to: 1, size: 3}", "size: unknown key of a transfer task: use name, transfer, from"),
        ("{transfer: 1MB, from: 0}", "tasks[0]: has no to: name the receiving host"),
        ("{transfer: 1MB, to: 0}", "tasks[0]: has no from: name the sending host"),
        ("{transfer: 1MB, from: 2, to: 2}", "tasks[0]: goes from host 2 to itself: drop it"),
        ("{transfer: 0.5B, from: 0, to: 1}", "write a size that is a whole number of bytes"),
        ("{transfer: 1MB, from: 0, to: 1, rate_cap: 0Gbps}", "rate_cap: bandwidth '0Gbps' is zero"),
        ("{transfer: 1MB, from: 0, to: 1, start_up: 5}", "start_up: time '5' has no unit"),
        ("{compute: 1ms, transfer: 1MB, gpu: 0}", "has compute and transfer: a task is exactly one of these"),
        ("{gpu: 0}", "has neither compute, transfer nor marker: a task is exactly one of these"),
        ("{marker: 1}", "marker is 1: write marker: true"),
        ("{marker: true, after: nobody}", "waits for 'nobody', which is not a task: correct the name or add the task"),
        ("{marker: true, after: [{}]}", "after has {}, which is not a name"),
        ("{name: on, marker: true}", "name has True, which is not a name: write it in quotes"),
        ("just words", "tasks[0]: is not a mapping"),
        ("{name: a, marker: true, after: a}", "tasks form a dependency cycle: a -> a: remove one"),
    ],
)
def test_a_row_with_a_mistake_is_refused_with_its_position_and_the_remedy(row: str, finding: str) -> None:
    message = findings(f"tasks:\n- {row}\n")
    assert message.startswith("step.yaml: ")
    assert "findings" not in message
    assert finding in message


def test_a_name_given_twice_names_both_rows() -> None:
    message = findings("tasks: [{name: a, marker: true}, {marker: true}, {name: a, marker: true}]")
    assert "tasks[2] (a): has the same name as tasks[0]: give every task its own name" in message


def test_a_circle_is_shown_and_only_the_circle() -> None:
    message = findings("""
        tasks:
        - {name: head, marker: true}
        - {name: a, marker: true, after: [head, c]}
        - {name: b, marker: true, after: a}
        - {name: c, marker: true, after: b}
        - {name: tail, marker: true, after: c}
        - {name: x, marker: true, after: y}
        - {name: y, marker: true, after: x}
    """)
    assert "2 findings" in message
    circles = [line.split("cycle: ")[1].split(":")[0].split(" -> ") for line in message.splitlines()[1:]]
    assert [sorted(set(circle)) for circle in circles] == [["a", "b", "c"], ["x", "y"]]
    # Each task comes right after the one that it waits for.
    assert " -> ".join(circles[0]) in "a -> b -> c -> a -> b -> c"


def test_all_mistakes_come_at_once() -> None:
    message = findings("""
        speed: 3
        tasks:
        - {name: a, compute: 2, gpu: 0}
        - {name: b, transfer: 1MB, from: 0}
        - {name: a, marker: true, after: [ghost]}
    """)
    assert "5 findings" in message
    for part in ("speed: unknown key", "tasks[0] (a)", "tasks[1] (b)", "tasks[2] (a)", "'ghost'"):
        assert part in message


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("- a", "is not a mapping: begin with the key tasks"),
        ("tasks: []", "has no tasks"),
        ("tasks: {a: b}", "has no tasks"),
        ("{}", "has no tasks"),
        ("tasks: [{marker: true, marker: true}]", "the key 'marker' is given twice"),
        ("tasks: [", "fix the YAML"),
    ],
)
def test_a_file_that_is_no_list_of_tasks_is_refused(text: str, finding: str) -> None:
    assert finding in findings(text)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="does not exist: check the path"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(GraphError, match=r"the extension '\.txt' is unknown: use one of \.npz, \.yaml, \.yml, \.json"):
        load(tmp_path / "graph.txt")
    (tmp_path / "latin.yaml").write_bytes("tasks: [{name: sp\xe4t, marker: true}]".encode("latin-1"))
    with pytest.raises(GraphError, match="is not UTF-8 text"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(GraphError, match="cannot be read"):
        load(tmp_path / "folder.json")


def test_slips_of_units_are_refused_where_people_write() -> None:
    message = findings("tasks: [{marker: true, after: f}, {name: f, compute: 48h, gpu: 0}]")
    assert "tasks[1] (f): computes for 1.728e+05 s, longer than a day" in message
    slow = Torus((2, 2), bandwidth=100.0).build()
    message = findings("tasks: [{transfer: 1MB, from: 0, to: 1}]", fabric=slow)
    assert "has a bandwidth of 800 bps: slower than 1 Mbps" in message


def test_the_example_is_a_step_whose_time_can_be_computed_by_hand() -> None:
    """18 ms until layer 1 has gradients, six rounds of 3.21 ms, 4.8 ms for the more urgent ring, 1 ms of update."""
    graph = load(EXAMPLE)
    transfer = graph.kind == TaskKind.TRANSFER
    routes = shortest(IdealSwitch(4, bandwidth=12.5e9).build(), graph.place[transfer], graph.peer[transfer])
    assert run_system(system_of(graph, routes)).end.max() == pytest.approx(18e-3 + 6 * 3.21e-3 + 4.8e-3 + 1e-3)


def test_rows_of_routes_are_kept_where_transfers_name_them(tmp_path):
    graph = make_graph([TaskKind.TRANSFER] * 2, 0, 1, 8.0, [0, 0, 0], [], route=[-1, 5])
    save(graph, tmp_path / "named.npz")
    assert load(tmp_path / "named.npz").route.tolist() == [-1, 5]
