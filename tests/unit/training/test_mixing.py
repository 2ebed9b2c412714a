"""Adding up in training steps: beside tensor and pipeline parallelism, in plan files, and by default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.hardware import read_cluster
from ropewalk.plans import read_plan, write_plan
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import ORDERS, Order, Strategy
from ropewalk.task.lockstep import ADDER
from ropewalk.training import NetworkUse, TrainingQuestion, answer, transport_of
from ropewalk.training.planned import plan_of, question_of
from ropewalk.training.quick import QuickSteps

ASKED = TrainingQuestion("gpt2:layers=4", read_cluster("2x4"), batch=32, tensor=2, pipeline=2, memory_check=False)


def step_of(mixer, collectives="fluid", **use):
    transport = None if mixer is None else replace(transport_of("h200"), mixer=mixer)
    network = NetworkUse(algorithm="ring", transport=transport, collectives=collectives, **use)
    return answer(replace(ASKED, network=network))


@pytest.fixture(scope="module")
def times():
    mixers = {"default": None, "free": FREE, "1TB/s": Mixer(1e12), "20GB/s": Mixer(20e9), "2GB/s": Mixer(2e9)}
    return {name: step_of(mixer).statistics.step_time_s for name, mixer in mixers.items()}


def test_gpus_add_beside_what_they_send_so_that_measured_bandwidths_hold(times):
    assert times["default"] == times["free"] == times["1TB/s"]


def test_slow_adders_hold_up_tensor_and_data_parallel_groups(times):
    assert times["free"] < times["20GB/s"] < times["2GB/s"]


def test_by_default_the_gpu_adds_at_its_measured_rate_and_nothing_is_counted_twice():
    network = NetworkUse().settled("h200", read_cluster("2x4"))
    assert network.transport.mixer == Mixer(1.45e12)
    assert replace(NetworkUse(), collectives="rounds").settled("h200", read_cluster("2x4")).transport.mixer == FREE


def test_what_a_gpu_adds_by_default_is_not_counted_twice_where_rounds_are_written_out_later():
    cluster = read_cluster("2x4")
    usual = NetworkUse().settled("h200", cluster)
    written = usual.written_in("rounds", cluster)
    assert (written.collectives, written.transport.mixer) == ("rounds", FREE)
    assert written.written_in("fluid", cluster) == usual
    told = replace(usual, transport=replace(usual.transport, mixer=Mixer(5e9)))
    assert told.written_in("rounds", cluster).transport.mixer == Mixer(5e9)


@pytest.mark.parametrize("order", [ORDERS["priority"].make, Order(fusion=0.0, credit_bytes=4e6)])
def test_launches_that_are_under_way_together_share_the_adder(order):
    transport = replace(transport_of("h200"), mixer=Mixer(1e9))
    network = NetworkUse(algorithm="ring", transport=transport)
    usual = Strategy(order=order)
    asked = TrainingQuestion("gpt2:layers=4", read_cluster("2x4"), batch=8, usual=usual, memory_check=False)
    found = answer(replace(asked, network=network))
    added_s = 7 / 8 * 2 * found.workload.trained_parameters() / 1e9
    assert added_s < found.statistics.step_time_s < 2 * added_s
    assert found.statistics.step_time_s > 5 * answer(asked).statistics.step_time_s


@pytest.mark.parametrize(("order", "purposes"), [("priority", 2), ("one-stream", 2), ("buckets", 0), ("streamed", 0)])
def test_collectives_of_all_purposes_share_an_adder_only_where_launches_overlap(order, purposes):
    network = NetworkUse(algorithm="ring", transport=replace(transport_of("h200"), mixer=Mixer(2e9)))
    usual = Strategy(order=ORDERS[order].make)
    run = answer(replace(ASKED, pipeline=1, usual=usual, network=network)).run
    adds = np.flatnonzero(run.trace.graph.stream == ADDER)
    assert len(np.unique(run.step.stream[run.operation_of_task[adds]])) == purposes


def test_compute_exposed_communication_and_bubbles_add_up_where_adds_are_tasks():
    found = step_of(Mixer(20e9), "rounds")
    free = step_of(FREE, "rounds")
    assert found.statistics.step_time_s > free.statistics.step_time_s
    assert found.statistics.compute_s == pytest.approx(free.statistics.compute_s, rel=1e-9)


def test_headers_do_not_count_as_added():
    free, slow = (step_of(mixer, level=LevelUse("wire")) for mixer in (FREE, Mixer(2e9)))
    assert slow.statistics.step_time_s == pytest.approx(step_of(Mixer(2e9)).statistics.step_time_s, rel=2e-3)
    assert free.statistics.step_time_s < slow.statistics.step_time_s


def test_a_plan_keeps_its_mixer_and_its_time(tmp_path):
    found = step_of(Mixer(2e9))
    write_plan(plan_of(found), tmp_path / "plan.json")
    again = answer(question_of(read_plan(tmp_path / "plan.json")))
    assert again.transport.mixer == Mixer(2e9)
    assert again.statistics.step_time_s == found.statistics.step_time_s


def test_quick_steps_add_up_as_long_as_full_ones(times):
    network = NetworkUse(algorithm="ring", transport=replace(transport_of("h200"), mixer=Mixer(2e9)))
    asked = replace(ASKED, network=network)
    quick = QuickSteps(asked).run(answer(asked).strategy)
    assert quick.step_time_s == pytest.approx(times["2GB/s"], rel=1e-9)
