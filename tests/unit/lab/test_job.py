"""Collectives as jobs: every transfer over its connections, and data that is right in whatever order things arrive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.act import Act
from ropewalk.errors import LabError
from ropewalk.fabric import IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.collective import collective_work
from ropewalk.lab.forwarding import path_numbers, pinned
from ropewalk.lab.hash_paths import _answers
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.measure import goodput, payload_share
from ropewalk.lab.network import LabNetwork, host_address
from ropewalk.lab.process import LabRun
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import or_shortest, routes_by_name
from ropewalk.lab.step import in_lab, lanes_of
from ropewalk.lab.sums import CheckedSums
from ropewalk.report.lab import lab_page
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import Kind, Sketch


def job_on(builder, collective, act=Act.ALL_REDUCE, size=600, routing="default", groups=()):
    network = LabNetwork(builder.build())
    question = LabQuestion(collective, act, size, groups=groups)
    work = collective_work(network, routes_by_name(network.fabric, routing)[1], question)
    return work.job, work.routes


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
            under_way[task] = sums_of[task].sent(task) if graph.kind[task] == Kind.TRANSFER else None
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
    (sums,) = replayed(job, 0)
    sums.held[1][0] = sums.held[1][0] + 1
    assert sums.wrong() == ["rank 1 has a wrong sum of chunk 0"]


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


def test_headers_are_taken_off_every_link():
    network = LabNetwork(IdealSwitch(3, 2.5e6).build())
    assert payload_share(network) == 1448 / 1514
    assert goodput(network, {0: 8_000_000})[:2] == pytest.approx([1e6 * 1448 / 1514, 2.5e6 * 1448 / 1514])


QUIET, BUSY = MachineUse(1.0, 2, 0.0, 0.0, 0.1, 0.1, 1.5), MachineUse(1.0, 2, 0.0, 0.5, 0.1, 0.1, 1.5)


def an_answer(times, disturbed=()):
    job, routes = job_on(IdealSwitch(3, 2.5e6), "ring", size=3000)
    predicted = simulate(job.graph, routes)
    runs = tuple(
        LabRun(
            tuple(predicted.start),
            tuple(predicted.end * time / predicted.makespan),
            (),
            BUSY if at in disturbed else QUIET,
        )
        for at, time in enumerate(times)
    )
    carried = np.full(routes.fabric.links, 2000.0)
    return LabAnswer(
        "ring all-reduce", {"collective": "ring"}, routes.fabric, 1 / 5000, "dmodk", predicted, routes.fabric.bandwidth,
        carried, runs, carried * 1.01,
    )  # fmt: skip


def test_disturbed_runs_do_not_count_while_others_do():
    found = an_answer([1.0, 2.0, 9.0], disturbed=(2,))
    assert found.measured_s == pytest.approx(1.5)
    assert found.spread == pytest.approx(1 / 1.5)
    assert any("disturbed 1 of 3 runs" in note and "left out" in note for note in found.notes())
    alone = an_answer([1.0, 2.0], disturbed=(0, 1))
    assert alone.measured_s == pytest.approx(1.5)
    assert any("none of them can be trusted" in note for note in alone.notes())


def test_more_messages_than_ranks_keep_up_with_are_said():
    quick = replace(an_answer([1.5]), messages=10**9)
    assert any("messages per second" in note for note in quick.notes())


def test_what_full_buckets_let_pass_at_once_is_said():
    small, large = an_answer([1.5]), replace(an_answer([1.5]), predicted_bytes=np.full(6, 1e8))
    assert small.free_share() == 1.0
    assert any("full buckets" in note for note in small.notes())
    assert not any("full buckets" in note for note in large.notes())


def test_times_are_also_said_at_the_speeds_of_the_fabric():
    assert any("(1:5000)" in note and "300 us" in note for note in an_answer([1.5]).notes())


def test_the_page_has_runs_timelines_flows_and_links():
    page = lab_page(an_answer([1.0, 1.1], disturbed=(0,)))
    for words in ("Timeline, predicted", "Timeline, measured", "Flow by flow", "Bytes on links", "dmodk"):
        assert words in page
    assert an_answer([1.0]).as_json()["data_is_right"]


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
    assert graph.amount[graph.kind == Kind.COMPUTE].tolist() == [5.0]
    assert set(graph.amount[graph.kind == Kind.TRANSFER].tolist()) == {1e5}
    assert graph.start_up[graph.kind == Kind.TRANSFER] == pytest.approx(1e-2)


def test_rows_that_a_collective_brings_are_further_paths_of_their_pair():
    ring = Ring(4).build()
    usual = shortest(ring, np.array([0, 1]), np.array([1, 0]))
    routes = usual.with_rows(or_shortest([(1.0, (0, 3, 2, 1))])(ring, np.array([0]), np.array([1])))
    assert path_numbers(routes).tolist() == [0, 0, 1]
    tables = pinned(routes)
    assert tables.paths == 2
    assert tables.nodes[0].main[host_address(1, 0)] != tables.nodes[0].main[host_address(1, 1)]
    assert host_address(3) in tables.nodes[2].main
