"""Collectives as jobs: every transfer over its connections, and data that is right in whatever order things arrive."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.act import Act
from ropewalk.fabric import IdealSwitch, LeafSpine, Torus
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.forwarding import pinned
from ropewalk.lab.hash_paths import _answers
from ropewalk.lab.job import job_of_program
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.measure import goodput, payload_share, subject_of
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import LabRun
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import routes_by_name
from ropewalk.lab.sums import CheckedSums
from ropewalk.report.lab import lab_page
from ropewalk.sim import simulate
from ropewalk.task import Kind


def job_on(builder, collective, act=Act.ALL_REDUCE, size=600, routing="default", shared=False):
    network = LabNetwork(builder.build())
    subject = subject_of(network, LabQuestion(collective, act, size))
    routes = subject.own or routes_by_name(network.fabric, routing)[1]
    return job_of_program(subject.program, subject.rounds, routes, congestion="cubic", shared=shared), routes, subject


def replayed(job, seed):
    """The data after a run in which whatever is under way arrives in any order."""
    random, sums, graph = np.random.default_rng(seed), CheckedSums(job.data), job.graph
    waits = np.diff(graph.dep_start).tolist()
    after = [[] for _ in range(graph.tasks)]
    for task in range(graph.tasks):
        for before in graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]].tolist():
            after[before].append(task)
    under_way = {}
    ready = [task for task, count in enumerate(waits) if not count]
    while ready or under_way:
        for task in ready:
            under_way[task] = sums.sent(task) if graph.kind[task] == Kind.TRANSFER else None
        ready = []
        task = list(under_way)[random.integers(len(under_way))]
        content = under_way.pop(task)
        if content is not None:
            sums.arrived(task, content)
        for later in after[task]:
            waits[later] -= 1
            if not waits[later]:
                ready.append(later)
    return sums


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
    job, _, _ = job_on(builder, collective, act)
    for seed in range(3):
        assert replayed(job, seed).wrong() == []


def test_a_wrong_number_is_found():
    job, _, _ = job_on(IdealSwitch(3), "ring")
    sums = replayed(job, 0)
    sums.held[1][0] = sums.held[1][0] + 1
    assert sums.wrong() == ["rank 1 has a wrong sum of chunk 0"]


@pytest.mark.parametrize("routing", ["dimension-rotated", "shortest"])
def test_parts_of_a_transfer_are_its_bytes_by_the_shares_of_paths(routing):
    job, routes, _ = job_on(Torus((3, 3)), "mesh", routing=routing, size=9000)
    for task, parts in job.parts.items():
        assert sum(size for _, size in parts) == job.graph.amount[task]
        row = routes.find(job.graph.place[task], job.graph.peer[task])[0]
        assert len(parts) == routes.path_start[row + 1] - routes.path_start[row]
        for connection, _ in parts:
            one = job.connections[connection]
            assert (one.src, one.dst) == (job.graph.place[task], job.graph.peer[task])
    assert max(one.path for one in job.connections) < pinned(routes).paths


def test_lanes_have_connections_of_their_own_unless_the_kernel_hashes():
    own, _, _ = job_on(Torus((3, 3)), "ring", routing="shortest")
    shared, _, _ = job_on(Torus((3, 3)), "ring", routing="shortest", shared=True)
    assert len(shared.connections) == len({(one.src, one.dst) for one in own.connections})
    assert len(own.connections) >= len(shared.connections)


def test_headers_are_taken_off_every_link():
    network = LabNetwork(IdealSwitch(3, 2.5e6).build())
    assert payload_share(network) == 1448 / 1514
    assert goodput(network, {0: 8_000_000})[:2] == pytest.approx([1e6 * 1448 / 1514, 2.5e6 * 1448 / 1514])


QUIET, BUSY = MachineUse(1.0, 2, 0.0, 0.0, 0.1, 0.1, 1.5), MachineUse(1.0, 2, 0.0, 0.5, 0.1, 0.1, 1.5)


def an_answer(times, disturbed=()):
    job, routes, subject = job_on(IdealSwitch(3, 2.5e6), "ring", size=3000)
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
        LabQuestion("ring", size_bytes=3000), routes.fabric, 5000.0, "dmodk", subject.size_bytes, predicted,
        routes.fabric.bandwidth, carried, runs, carried * 1.01,
    )  # fmt: skip


def test_disturbed_runs_do_not_count_while_others_do():
    found = an_answer([1.0, 2.0, 9.0], disturbed=(2,))
    assert found.measured_s == pytest.approx(1.5)
    assert found.spread == pytest.approx(1 / 1.5)
    assert any("disturbed 1 of 3 runs" in note and "left out" in note for note in found.notes())
    alone = an_answer([1.0, 2.0], disturbed=(0, 1))
    assert alone.measured_s == pytest.approx(1.5)
    assert any("none of them can be trusted" in note for note in alone.notes())


def test_times_are_also_said_at_the_speeds_of_the_fabric():
    assert any("(1:5000)" in note and "300 us" in note for note in an_answer([1.5]).notes())


def test_the_page_has_runs_timelines_flows_and_links():
    page = lab_page(an_answer([1.0, 1.1], disturbed=(0,)))
    for words in ("Timeline, predicted", "Timeline, measured", "Flow by flow", "Bytes on links", "dmodk"):
        assert words in page
    assert an_answer([1.0]).as_json()["data_is_right"]


def test_answers_of_a_batch_are_read_one_after_the_other():
    assert [one["dev"] for one in _answers('[{"dev":"c0"}]\n[{"dev":"c1"}]\n')] == ["c0", "c1"]
