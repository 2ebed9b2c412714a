"""Collectives as jobs: every transfer over its connections, and data that is right in whatever order things arrive."""

from __future__ import annotations

import os
import socket
from dataclasses import replace

import numpy as np
import pytest
from checked_sums import CheckedSums

from ropewalk.collectives.act import Act
from ropewalk.errors import LabError
from ropewalk.fabric import IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.collective import collective_work
from ropewalk.lab.forwarding import every_pair, path_numbers, pinned
from ropewalk.lab.hash_paths import _answers
from ropewalk.lab.job import job_of_graph
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.network import LabNetwork, host_address
from ropewalk.lab.process import LabRun, LinkSamples
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.rank_state import ChunkMemory, brought
from ropewalk.lab.ranks import RankLoop, Stuck
from ropewalk.lab.request import or_shortest, routes_by_name
from ropewalk.lab.result import LabPrediction, curves_of
from ropewalk.lab.step import in_lab, lanes_of, work_of_step
from ropewalk.lab.worker import STOP
from ropewalk.report.lab import lab_page
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.sim.step import Window
from ropewalk.task import Sketch, TaskKind


def job_on(builder, collective, act=Act.ALL_REDUCE, size=600, routing="default", groups=()):
    network = LabNetwork(builder.build())
    question = LabQuestion(collective, act, size, groups=groups)
    work = collective_work(network, routes_by_name(network.fabric, routing)[1], question)
    return work.job, work.routes


def over_sockets(job, repeats=1):
    """Runs of a job over pairs of sockets, without a network."""
    pairs, asked = [socket.socketpair() for _ in job.connections], os.pipe()
    loop = RankLoop(job, [one.fileno() for one, _ in pairs], [one.fileno() for _, one in pairs], asked=asked[0])
    found = [loop.run(10.0) for _ in range(repeats)]
    loop.close()
    for descriptor in asked:
        os.close(descriptor)
    return found


def replayed(job, seed):
    """The data after a run in which whatever is under way arrives in any order."""
    random, graph = np.random.default_rng(seed), job.graph
    every = [CheckedSums(data) for data in job.data]
    sums_of = {task: sums for sums in every for task in sums.data.carried}
    waits = np.diff(graph.dep_start).tolist()
    after = [[] for _ in range(graph.tasks)]
    for task in range(graph.tasks):
        for before in graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]].tolist():
            after[before].append(task)
    under_way = {}
    ready = [task for task, count in enumerate(waits) if not count]
    while ready or under_way:
        for task in ready:
            under_way[task] = sums_of[task].sent(task) if graph.kind[task] == TaskKind.TRANSFER else None
        ready = []
        task = list(under_way)[random.integers(len(under_way))]
        content = under_way.pop(task)
        if content is not None:
            sums_of[task].arrived(task, content)
        for later in after[task]:
            waits[later] -= 1
            if not waits[later]:
                ready.append(later)
    return every


CASES = [
    (Torus((3, 3)), "ring", Act.ALL_REDUCE),
    (Torus((3, 3)), "hips", Act.ALL_REDUCE),
    (Torus((3, 3)), "forest", Act.ALL_REDUCE),
    (LeafSpine(2, 2, 2), "halving-doubling", Act.ALL_REDUCE),
    (LeafSpine(2, 2, 2), "mesh", Act.ALL_GATHER),
    (LeafSpine(2, 2, 2), "double-tree", Act.ALL_REDUCE),
    (IdealSwitch(5), "ps", Act.ALL_REDUCE),
    (IdealSwitch(5), "ring", Act.REDUCE_SCATTER),
    (IdealSwitch(4), "direct", Act.ALL_TO_ALL),
    (IdealSwitch(5), "binomial", Act.BROADCAST),
]


@pytest.mark.parametrize(("builder", "collective", "act"), CASES, ids=str)
def test_sums_are_right_in_whatever_order_transfers_arrive(builder, collective, act):
    job, _ = job_on(builder, collective, act)
    for seed in range(3):
        assert [sums.wrong() for sums in replayed(job, seed)] == [[]]


@pytest.mark.parametrize(("builder", "collective", "act"), CASES, ids=str)
def test_ranks_over_sockets_end_with_the_sums_of_the_plain_reference(builder, collective, act):
    job, _ = job_on(builder, collective, act, size=60_000)
    for ran in over_sockets(job, repeats=2):
        assert ran["wrong"] == []
        assert all(0 <= start <= end for start, end in zip(ran["start"], ran["end"], strict=True))
        for task in range(job.graph.tasks):
            for before in job.graph.dep[job.graph.dep_start[task] : job.graph.dep_start[task + 1]].tolist():
                assert ran["start"][task] >= ran["end"][before]


def test_streams_compute_the_most_urgent_task_first_and_start_ups_wait():
    sketch, ring = Sketch(), Ring(3, 1e6).build()
    first = sketch.compute(0, 0.01)
    urgent, other = (sketch.compute(0, 0.01, priority=priority, after=[first]) for priority in (0, 5))
    sent = sketch.transfer(0, 1, 100_000, after=[first], start_up=0.02)
    nothing = sketch.transfer(0, 1, 0.0)
    job = job_of_graph(sketch.graph(), shortest(ring, np.array([0]), np.array([1])), {}, "cubic")
    (ran,) = over_sockets(job)
    assert ran["start"][other] >= ran["end"][urgent] >= ran["start"][urgent] + 0.01
    assert ran["start"][sent] >= ran["end"][first] + 0.02
    assert ran["end"][nothing] >= ran["start"][nothing] >= 0


def test_ranks_whose_messages_do_not_arrive_say_which_are_silent():
    job, _ = job_on(IdealSwitch(3), "ring")
    pairs, lost = [socket.socketpair() for _ in job.connections], socket.socketpair()
    outgoing, incoming = [lost[0].fileno(), *(one.fileno() for one, _ in pairs[1:])], [one.fileno() for _, one in pairs]
    nobody = os.pipe()
    loop = RankLoop(job, outgoing, incoming, asked=nobody[0])
    with pytest.raises(Stuck, match="tasks are not done") as problem:
        loop.run(0.05)
    assert len(problem.value.silent) >= 1
    os.close(nobody[1])
    with pytest.raises(Stuck, match="stopped it or ended"):
        loop.run(5.0)


def test_a_line_that_comes_while_ranks_run_stops_the_run():
    job, _ = job_on(IdealSwitch(3), "ring")
    pairs, lost = [socket.socketpair() for _ in job.connections], [socket.socketpair() for _ in job.connections]
    asked = os.pipe()
    loop = RankLoop(job, [one.fileno() for one, _ in lost], [one.fileno() for _, one in pairs], asked=asked[0])
    os.write(asked[1], STOP.encode())
    with pytest.raises(Stuck, match="stopped it"):
        loop.run(5.0)


def test_groups_at_once_have_sums_of_their_own():
    job, _ = job_on(LeafSpine(2, 2, 3), "ring", groups=((0, 3, 1), (5, 2)))
    assert [data.ranks for data in job.data] == [3, 2]
    assert [sums.wrong() for sums in replayed(job, 1)] == [[], []]
    hosts = [{(job.graph.place[task], job.graph.peer[task]) for task in data.carried} for data in job.data]
    assert {end for pair in hosts[0] for end in pair} == {0, 1, 3}
    assert {end for pair in hosts[1] for end in pair} == {2, 5}


def test_groups_that_share_a_host_are_refused():
    with pytest.raises(LabError, match="give every host to one group"):
        LabQuestion("ring", groups=((0, 1), (1, 2))).check()
    with pytest.raises(LabError, match="two or more"):
        LabQuestion("ring", groups=((0,),)).check()


def test_a_wrong_number_is_found():
    job, _ = job_on(IdealSwitch(3), "ring")
    memory = ChunkMemory(job.data)
    held, present = memory.filled()
    for rank in range(3):
        for chunk in range(3):
            at = memory.at[memory.place[0][rank, chunk]]
            held[at : at + job.data[0].chunk_items] = brought(job.data[0], chunk, 1 + 2 + 3)
    assert memory.wrong(held, present) == []
    held[memory.at[memory.place[0][1, 0]]] += 1
    assert memory.wrong(held, present) == ["rank 1 has a wrong result for chunk 0"]


@pytest.mark.parametrize("routing", ["dimension-rotated", "shortest"])
def test_parts_of_a_transfer_are_its_bytes_by_the_shares_of_paths(routing):
    job, routes = job_on(Torus((3, 3)), "mesh", routing=routing, size=9000)
    for task, parts in job.parts.items():
        assert sum(size for _, size in parts) == job.graph.amount[task]
        row = routes.find(job.graph.place[task], job.graph.peer[task])[0]
        assert len(parts) == routes.path_start[row + 1] - routes.path_start[row]
        for connection, _ in parts:
            one = job.connections[connection]
            assert (one.src, one.dst) == (job.graph.place[task], job.graph.peer[task])
    assert max(one.path for one in job.connections) < pinned(routes).paths


def test_lanes_have_connections_of_their_own_unless_the_kernel_hashes():
    own, _ = job_on(Torus((3, 3)), "ring", routing="shortest")
    shared, _ = job_on(Torus((3, 3)), "ring", routing="hash")
    assert len(shared.connections) == len({(one.src, one.dst) for one in own.connections})
    assert len(own.connections) >= len(shared.connections)


QUIET, BUSY = MachineUse(1.0, 2, 0.0, 0.0, 0.1, 0.1, 1.5), MachineUse(1.0, 2, 0.0, 0.5, 0.1, 0.1, 1.5)


def an_answer(times, disturbed=()):
    job, routes = job_on(IdealSwitch(3, 2.5e6), "ring", size=3000)
    predicted = simulate(job.graph, routes, record_rates=True)
    curves = curves_of(predicted, 1.0)
    runs = tuple(
        LabRun(
            tuple(predicted.start),
            tuple(predicted.end * time / predicted.makespan),
            (),
            BUSY if at in disturbed else QUIET,
            LinkSamples((), (), ()),
        )
        for at, time in enumerate(times)
    )
    carried = np.full(routes.fabric.links, 2000.0)
    return LabAnswer(
        what="ring all-reduce", details={"collective": "ring"}, fabric=routes.fabric, real_seconds=1 / 5000,
        routing="dmodk", predicted=predicted, wire_speed=routes.fabric.bandwidth, predicted_bytes=carried, runs=runs,
        levels=(LabPrediction("flow", predicted.start, predicted.end, curves),), curves=(curves,) * len(runs),
        sent_bytes=carried * 1.01,
    )  # fmt: skip


def test_disturbed_runs_do_not_count_while_others_do():
    found = an_answer([1.0, 2.0, 9.0], disturbed=(2,))
    assert found.measured_s == pytest.approx(1.5)
    assert found.spread == pytest.approx(1 / 1.5)
    assert any("disturbed 1 of 3 runs" in note and "left out" in note for note in found.notes())
    alone = an_answer([1.0, 2.0], disturbed=(0, 1))
    assert alone.measured_s == pytest.approx(1.5)
    assert any("no run can be trusted" in note for note in alone.notes())


def test_more_messages_than_ranks_keep_up_with_are_said():
    quick = replace(an_answer([1.5]), messages=10**9)
    assert any("messages per second" in note for note in quick.notes())


def test_times_are_also_said_at_the_speeds_of_the_fabric():
    assert any("(1:5000)" in note and "300 us" in note for note in an_answer([1.5]).notes())
    assert an_answer([1.5]).notes()[0] == "one measured run, so its spread is unknown"


def test_the_page_has_runs_timelines_flows_and_links():
    page = lab_page(an_answer([1.0, 1.1], disturbed=(0,)))
    for words in (
        "Where prediction and measurement differ",
        "Load of every link",
        "Timelines",
        "Error by flow",
        "Every link",
        "dmodk",
    ):
        assert words in page


def test_files_have_every_flow_and_what_every_link_had_sent_by_when():
    found = an_answer([1.0, 2.0, 3.0]).as_json()
    assert found["data_is_right"]
    assert found["levels"]["flow"]["seconds"] == found["predicted_s"]
    first, link = found["flows"][0], found["links"][0]
    assert first["links"] == ["h0->switch", "switch->h1"]
    assert first["measured"][1] / first["predicted"]["flow"][1] == pytest.approx(2.0 / found["predicted_s"])
    assert len(link["sent_by_instant"]["measured"]) == len(found["instants_s"]["measured"])


def test_answers_of_a_batch_are_read_one_after_the_other():
    assert [one["dev"] for one in _answers('[{"dev":"c0"}]\n[{"dev":"c1"}]\n')] == ["c0", "c1"]


def two_sends_at_once():
    """Two transfers between the same hosts at the same time, and one after them; one host computes first."""
    sketch, ring = Sketch(), Ring(3, 1e6, latency=1e-3).build()
    computed = sketch.compute(0, 0.5)
    first, second = (sketch.transfer(0, 1, 1e6, after=[computed]) for _ in range(2))
    sketch.transfer(0, 1, 1e6, after=[first, second])
    return simulate(sketch.graph(), shortest(ring, np.array([0]), np.array([1])))


def test_transfers_that_overlap_have_connections_of_their_own():
    lanes = lanes_of(two_sends_at_once())
    assert sorted(lanes.values()) == [0, 0, 1]


def test_a_step_in_the_lab_keeps_its_proportions():
    trace = two_sends_at_once()
    graph = in_lab(trace, scale=100.0, shrink=10.0)
    assert graph.amount[graph.kind == TaskKind.COMPUTE].tolist() == [5.0]
    assert set(graph.amount[graph.kind == TaskKind.TRANSFER].tolist()) == {1e5}
    assert graph.start_up[graph.kind == TaskKind.TRANSFER] == pytest.approx(1e-2)


def test_rows_that_a_collective_brings_are_further_paths_of_their_pair():
    ring = Ring(4).build()
    usual = shortest(ring, np.array([0, 1]), np.array([1, 0]))
    routes = usual.with_rows(or_shortest([(1.0, (0, 3, 2, 1))])(ring, np.array([0]), np.array([1])))
    assert path_numbers(routes).tolist() == [0, 0, 1]
    tables = pinned(routes)
    assert tables.paths == 2
    assert tables.nodes[0].main[host_address(1, 0)] != tables.nodes[0].main[host_address(1, 1)]
    assert host_address(3) in tables.nodes[2].main


def a_step():
    fabric = Ring(4, 2.5e6).build()
    routes = shortest(fabric, *every_pair(fabric))
    sketch = Sketch()
    for _ in range(4):
        sketch.transfer(0, 1, 1e6)
    return LabNetwork(fabric), simulate(sketch.graph(), routes)


def test_a_step_is_one_step_and_steps_in_a_row_are_counted():
    network, trace = a_step()
    one = work_of_step(network, "net", trace, 10.0)
    assert one.what == "step of net, divided by 10,"
    assert one.details == {
        "model": "net",
        "shrink": 10.0,
        "steps": 1,
        "step_s": trace.makespan,
        "steps_s": trace.makespan,
    }
    row = work_of_step(network, "net", trace, 1.0, Window(0.5, 0.75, 4))
    assert row.what == "4 steps in a row of net"
    assert (row.details["steps"], row.details["step_s"], row.details["steps_s"]) == (4, 0.25, trace.makespan)


def test_the_answer_has_the_time_of_one_step_beside_that_of_all():
    one = replace(an_answer([1.0]), details={"steps": 1, "step_s": 1.5, "steps_s": 1.5})
    assert "without packet headers the step is simulated at 1.5 s" in one.notes()
    row = replace(an_answer([1.0]), details={"steps": 4, "step_s": 0.5, "steps_s": 2.25})
    assert "without packet headers the 4 steps are simulated at 2.25 s, and one between others at 500 ms" in row.notes()


def test_transfers_that_do_not_fill_a_packet_are_said():
    _, trace = a_step()
    whole = replace(an_answer([1.0]), predicted=trace)
    assert not any("smaller than a packet" in note for note in whole.notes())
    graph = replace(trace.graph, amount=np.array([1e4, 500.0, 500.0, 500.0]))
    some = replace(an_answer([1.0]), predicted=replace(trace, graph=graph))
    (note,) = [note for note in some.notes() if "smaller than a packet" in note]
    assert note.startswith("13 % of the bytes are in transfers smaller than a packet")
    assert note.endswith("give a larger --size, or a smaller --shrink")
    (note,) = [note for note in some.notes(advice=False) if "smaller than a packet" in note]
    assert note.endswith("whose headers weigh more than predicted")
