"""Runs of testbeds as they are made ready: the right hosts, whole bytes, as long as asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.lab.suite.collectives import CollectiveSetup
from ropewalk.lab.suite.dapple import step
from ropewalk.lab.suite.jobs import JobsSetup
from ropewalk.lab.suite.orders import ordered
from ropewalk.lab.suite.sizing import rough_run
from ropewalk.lab.suite.steps import StepSetup
from ropewalk.task import TaskKind


def time_of(ready):
    routes = ready.work.routes
    return ready.read(rough_run(ready.network, ready.work.job.graph, routes).end)


@pytest.mark.parametrize("collective", ["ring", "ps"])
def test_a_collective_is_given_the_bytes_that_take_the_seconds_asked_for(collective):
    ready = CollectiveSetup("ring:4", collective).ready(0.5, seed=0)
    assert time_of(ready) == pytest.approx(0.5, rel=1e-3)
    assert ready.work.details["size_bytes"] == pytest.approx(ready.amount * 1e6)


def test_slow_cables_are_slow_in_both_directions():
    fabric = CollectiveSetup("ring:4", "ring", "8Mbps", slowed={"h0-h1": 0.25}).built()
    speed = {fabric.link_name(link): float(fabric.bandwidth[link]) for link in range(fabric.links)}
    assert speed["h0->h1"] == speed["h1->h0"] == 0.25e6
    assert sorted(speed.values())[2:] == [1e6] * 6


def test_isolated_jobs_take_as_long_as_alone_and_others_meet():
    jobs = ("leaf-spine:4x4x4", "shift", (6, 6))
    plant, collective, gpus = jobs
    per_megabyte = {
        policy: time_of(ready) / ready.amount
        for policy in ("vclos", "source")
        if (ready := JobsSetup(plant, policy, collective, gpus).ready(0.5, 0))
    }
    alone = JobsSetup(plant, "vclos", collective, gpus, one_by_one=True).ready(0.5, 0)
    assert per_megabyte["vclos"] == pytest.approx(time_of(alone) / alone.amount, rel=1e-3)
    assert per_megabyte["source"] > 1.5 * per_megabyte["vclos"]


def test_messages_of_jobs_are_whole_bytes_and_the_kernel_routes_under_ecmp():
    ready = JobsSetup("leaf-spine:2x2x2", "ecmp", "ring", (4,)).ready(0.1, 0)
    graph = ready.work.job.graph
    sent = graph.amount[graph.kind == TaskKind.TRANSFER]
    assert (sent == np.rint(sent)).all()
    assert ready.routes is None
    assert (graph.route == -1).all()


def test_a_job_that_must_wait_is_refused_with_the_reason():
    with pytest.raises(ClusterError, match="job1 of 8 GPUs waits under vclos: 8 GPUs are requested, 0 are free"):
        JobsSetup("leaf-spine:2x4x4", "vclos", "ring", (8, 8)).ready(0.1, 0)


def test_a_step_in_the_lab_takes_as_long_per_sample_as_on_the_fabric():
    asked = partial(step, "gpipe", 2)
    ready = StepSetup(asked).ready(1.0, seed=0)
    promised = asked(0)
    assert time_of(ready) == pytest.approx(2.0, rel=0.01)
    assert time_of(ready) / ready.amount == pytest.approx(promised.statistics.step_time_s / 4, rel=1e-3)


def test_of_steps_in_a_row_the_steady_one_is_compared():
    asked = partial(ordered, "priority")
    ready, promised = StepSetup(asked).ready(1.0, seed=0), asked(0)
    assert promised.window is not None
    samples = promised.strategy.global_batch
    assert time_of(ready) / ready.amount == pytest.approx(promised.statistics.step_time_s / samples, rel=1e-3)
