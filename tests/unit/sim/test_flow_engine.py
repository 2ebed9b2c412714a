"""Tiny worlds whose times are computed by hand: sharing, latency, urgency, caps, streams."""

import numpy as np
import pytest
from fair_rates import max_min

from ropewalk.errors import GraphError, PhysicsError, RouteError
from ropewalk.fabric import Fabric, FabricDraft, IdealSwitch, Ring, Torus
from ropewalk.routing import ROUTERS, make_routes
from ropewalk.sim.flow.system import Times, run_system, system_of
from ropewalk.task import Sketch, TaskGraph, TaskKind


def run(sketch: Sketch, fabric: Fabric, router: str = "shortest") -> Times:
    graph = sketch.graph()
    transfer = graph.kind == TaskKind.TRANSFER
    return run_system(system_of(graph, ROUTERS[router].make(0)(fabric, graph.place[transfer], graph.peer[transfer])))


def log(graph: TaskGraph, times: Times) -> list[str]:
    """What a bystander would write down: starts and ends in order of time."""
    moments = [(times.end[task], 0, task, "ends") for task in range(graph.tasks)]
    moments += [(times.start[task], 1, task, "starts") for task in range(graph.tasks)]
    return [f"{time:g} {graph.name_of(task)} {what}" for time, _, task, what in sorted(moments)]


def star(hosts: int, bandwidth: float = 8.0, latency: float = 0.0) -> Fabric:
    return IdealSwitch(hosts, bandwidth=bandwidth, latency=latency).build()


def chain(*bandwidth: float) -> Fabric:
    """Hosts in a row, one link from each to the next."""
    draft = FabricDraft("chain")
    draft.add_hosts([f"h{number}" for number in range(len(bandwidth) + 1)])
    numbers = np.arange(len(bandwidth))
    draft.add_links(numbers, numbers + 1, np.array(bandwidth), duplex=False)
    return draft.freeze()


def test_one_transfer_takes_size_over_bandwidth() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 24.0)
    assert run(sketch, star(2)).end.tolist() == [3.0]


def test_three_flows_through_a_star_get_a_half_each() -> None:
    """A->C and B->C share the way into C, B->C and B->D the way out of B: all three run at one half."""
    sketch = Sketch()
    a_to_c = sketch.transfer(0, 2, 8.0)
    b_to_c = sketch.transfer(1, 2, 8.0)
    b_to_d = sketch.transfer(1, 3, 16.0)
    times = run(sketch, star(4))
    assert times.end[[a_to_c, b_to_c]].tolist() == [2.0, 2.0]
    # After two seconds B->D has sent 8 and has the link to itself.
    assert times.end[b_to_d] == 3.0


def test_what_one_flow_cannot_use_the_others_get() -> None:
    """Two flows share a link of 10; one of them is held to 2 elsewhere, so the other one runs at 8."""
    sketch = Sketch()
    slow = sketch.transfer(0, 2, 4.0)
    quick = sketch.transfer(1, 2, 16.0)
    times = run(sketch, chain(2.0, 10.0))
    assert times.end[[slow, quick]].tolist() == [2.0, 2.0]
    assert times.bound_by.tolist() == [0, 1]


def test_in_a_parking_lot_the_long_flow_shares_every_link() -> None:
    sketch = Sketch()
    through = sketch.transfer(0, 3, 6.0)
    local = [sketch.transfer(at, at + 1, 3.0) for at in range(3)]
    times = run(sketch, chain(2.0, 2.0, 2.0))
    # All at rate 1 until the local ones end at 3 s; then the long one has 3 bytes left at rate 2.
    assert times.end[local].tolist() == [3.0, 3.0, 3.0]
    assert times.end[through] == 4.5


def test_in_an_uneven_parking_lot_each_flow_stops_at_its_own_link() -> None:
    rate, bound_by = max_min(
        np.array([3.0, 4.0, 10.0]), np.array([0, 3, 4, 5, 6]), np.array([0, 1, 2, 0, 1, 2], np.int32)
    )
    assert rate.tolist() == [1.5, 1.5, 2.5, 8.5]
    assert bound_by.tolist() == [0, 0, 1, 2]


def test_latency_and_start_up_come_before_the_first_byte() -> None:
    sketch = Sketch()
    first = sketch.transfer(0, 1, 8.0, start_up=0.25)
    second = sketch.transfer(1, 2, 8.0, after=[first])
    times = run(sketch, star(3, latency=0.125))
    # Two links of 0.125 s and a start-up of 0.25 s, then one second.
    assert times.end[first] == 1.5
    assert times.start[second] == 1.5
    assert times.end[second] == 2.75


def test_a_flow_does_not_hold_bandwidth_before_its_first_byte() -> None:
    sketch = Sketch()
    now = sketch.transfer(0, 1, 8.0)
    later = sketch.transfer(0, 2, 8.0, start_up=0.5)
    times = run(sketch, star(3))
    # Alone until 0.5 s (4 bytes), then half each: 4 bytes at 4/s.
    assert times.end[now] == 1.5
    assert times.end[later] == 2.0


def test_a_transfer_of_nothing_takes_only_its_latency() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 0.0, start_up=0.5)
    sketch.transfer(0, 1, 0.0)
    assert run(sketch, star(2, latency=0.125)).end.tolist() == [0.75, 0.25]


def test_an_urgent_transfer_stops_the_others_and_they_resume() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 16.0, priority=1, label="bulk")
    sketch.transfer(0, 2, 8.0, priority=0, start_up=0.5, label="urgent")
    graph = sketch.graph()
    times = run(sketch, star(3))
    assert log(graph, times) == ["0 bulk starts", "0 urgent starts", "1.5 urgent ends", "3 bulk ends"]


def test_urgent_flows_leave_what_they_cannot_use() -> None:
    sketch = Sketch()
    urgent = sketch.transfer(0, 2, 4.0, priority=-1)
    bulk = sketch.transfer(1, 2, 16.0, priority=7)
    times = run(sketch, chain(2.0, 10.0))
    assert times.end[[urgent, bulk]].tolist() == [2.0, 2.0]


def test_a_cap_leaves_the_rest_to_the_others() -> None:
    sketch = Sketch()
    capped = sketch.transfer(0, 1, 4.0, rate_cap=2.0)
    free = sketch.transfer(0, 2, 12.0)
    times = run(sketch, star(3))
    assert times.end[[capped, free]].tolist() == [2.0, 2.0]
    assert times.bound_by[capped] == -1


def test_a_cap_above_the_fair_share_changes_nothing() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 8.0, rate_cap=5.0)
    sketch.transfer(0, 2, 8.0)
    assert run(sketch, star(3)).end.tolist() == [2.0, 2.0]


def test_transfers_between_the_same_two_hosts_share_like_strangers() -> None:
    sketch = Sketch()
    for size in (8.0, 8.0, 16.0):
        sketch.transfer(0, 1, size)
    # A third each until 3 s; the last has 8 bytes left and is alone.
    assert run(sketch, star(2)).end.tolist() == [3.0, 3.0, 4.0]


def test_shares_over_two_paths_use_both() -> None:
    """Across a square, half the bytes each way: twice the bandwidth of one path."""
    fabric = Ring(4, bandwidth=2.0).build()
    ends = {(int(a), int(b)): link for link, (a, b) in enumerate(zip(fabric.link_src, fabric.link_dst, strict=True))}
    routes = make_routes(
        fabric, np.array([0], np.int32), np.array([2], np.int32),
        np.array([0, 0]), np.array([0.5, 0.5]), np.array([0, 0, 1, 1]),
        np.array([ends[0, 1], ends[1, 2], ends[0, 3], ends[3, 2]], np.int32),
    )  # fmt: skip
    sketch = Sketch()
    sketch.transfer(0, 2, 12.0)
    assert run_system(system_of(sketch.graph(), routes)).end.tolist() == [3.0]


def test_markers_take_no_time_and_pass_on_at_once() -> None:
    sketch = Sketch()
    sent = sketch.transfer(0, 1, 8.0, label="sent")
    first = sketch.marker(after=[sent], label="first")
    second = sketch.marker(after=[first], label="second")
    sketch.compute(1, 0.5, after=[second], label="work")
    times = run(sketch, star(2))
    assert times.start.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert times.end.tolist() == [1.0, 1.0, 1.0, 1.5]


def test_a_stream_runs_one_task_at_a_time_and_streams_run_side_by_side() -> None:
    sketch = Sketch()
    sketch.compute(0, 1.0, label="a")
    sketch.compute(0, 1.0, label="b")
    sketch.compute(0, 1.5, stream=1, label="c")
    sketch.compute(1, 0.5, label="d")
    sketch.transfer(0, 1, 0.0, label="ping")
    assert [line for line in log(sketch.graph(), run(sketch, star(2))) if "ping" not in line] == [
        "0 a starts",
        "0 c starts",
        "0 d starts",
        "0.5 d ends",
        "1 a ends",
        "1 b starts",
        "1.5 c ends",
        "2 b ends",
    ]


def test_a_stream_takes_the_most_urgent_of_the_tasks_that_are_ready_together() -> None:
    sketch = Sketch()
    sketch.compute(0, 1.0, priority=5, label="idle")
    sketch.compute(0, 1.0, priority=1, label="urgent")
    sketch.transfer(0, 1, 0.0)
    assert run(sketch, star(2)).start[:2].tolist() == [1.0, 0.0]


def test_an_urgent_task_released_by_the_one_that_ends_goes_first() -> None:
    """When a task ends, what it releases is ready before the stream chooses again."""
    sketch = Sketch()
    head = sketch.compute(0, 1.0, label="head")
    sketch.compute(0, 1.0, priority=5, label="idle")
    sketch.compute(0, 1.0, after=[head], label="urgent")
    sketch.transfer(0, 1, 0.0)
    assert run(sketch, star(2)).start[:3].tolist() == [0.0, 2.0, 1.0]


def test_among_equals_the_one_that_was_ready_first_runs_first() -> None:
    sketch = Sketch()
    gate = sketch.transfer(0, 1, 8.0, label="gate")
    sketch.compute(0, 2.0, label="running")
    sketch.compute(0, 1.0, after=[gate], label="late")
    early = sketch.transfer(1, 0, 4.0, label="early gate")
    sketch.compute(0, 1.0, after=[early], label="early")
    times = run(sketch, star(2))
    assert times.start[4] == 2.0
    assert times.start[2] == 3.0


def test_a_running_task_is_never_interrupted() -> None:
    sketch = Sketch()
    sketch.compute(0, 2.0, priority=9, label="long")
    gate = sketch.transfer(0, 1, 8.0)
    sketch.compute(0, 1.0, priority=0, after=[gate], label="urgent")
    assert run(sketch, star(2)).start[2] == 2.0


def test_dimension_order_on_a_torus_meets_where_it_must() -> None:
    """(0,0)->(2,1) and (1,0)->(2,0) both cross the link (1,0)->(2,0) if axis 0 comes first."""
    fabric = Torus((5, 5), bandwidth=4.0).build()
    sketch = Sketch()
    sketch.transfer(0, 11, 8.0)
    sketch.transfer(5, 10, 8.0)
    assert run(sketch, fabric, "dimension").end.tolist() == [4.0, 4.0]


def test_rates_are_written_down_where_asked() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 8.0)
    sketch.transfer(0, 2, 16.0)
    graph = sketch.graph()
    routes = ROUTERS["shortest"].make(0)(star(3), graph.place, graph.peer)
    times = run_system(system_of(graph, routes), record_rates=True)
    assert times.rate_time is not None
    assert times.rate_flow is not None
    assert times.rate is not None
    lines = sorted(zip(times.rate_time.tolist(), times.rate_flow.tolist(), times.rate.tolist(), strict=True))
    assert lines == [(0.0, 0, 4.0), (0.0, 1, 4.0), (2.0, 0, 0.0), (2.0, 1, 8.0), (3.0, 1, 0.0)]
    assert run_system(system_of(graph, routes)).rate is None


def test_progress_ends_with_all_tasks() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 8.0)
    graph = sketch.graph()
    seen: list[tuple[int, int]] = []
    routes = ROUTERS["shortest"].make(0)(star(2), graph.place, graph.peer)
    run_system(system_of(graph, routes), progress=lambda done, tasks: seen.append((done, tasks)))
    assert seen[-1] == (1, 1)


def test_a_host_beyond_the_fabric_is_refused() -> None:
    sketch = Sketch()
    sketch.transfer(0, 9, 1.0)
    routes = ROUTERS["shortest"].make(0)(star(3), np.array([0], np.int32), np.array([1], np.int32))
    with pytest.raises(GraphError, match=r"names host 9.*use a larger fabric or fewer ranks"):
        system_of(sketch.graph(), routes)


def test_a_pair_without_a_route_is_refused() -> None:
    sketch = Sketch()
    sketch.transfer(0, 2, 1.0)
    routes = ROUTERS["shortest"].make(0)(star(3), np.array([0], np.int32), np.array([1], np.int32))
    with pytest.raises(RouteError, match="no route from h0 to h2"):
        system_of(sketch.graph(), routes)


def test_a_link_without_capacity_never_delivers_and_says_so() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 1.0)
    with pytest.raises(PhysicsError, match="1 of 1 tasks never finish"):
        run(sketch, chain(0.0))


def test_a_chain_of_thousands_of_steps_takes_their_sum() -> None:
    """Longer than any slice between two calls of the progress function."""
    sketch = Sketch()
    last: list[int] = []
    for number in range(3000):
        last = [sketch.transfer(number % 2, 1 - number % 2, 8.0, after=last)]
        last = [sketch.compute(0, 0.5, after=last)]
    times = run(sketch, star(2))
    assert times.end[-1] == 4500.0
    assert times.steps >= 6000
