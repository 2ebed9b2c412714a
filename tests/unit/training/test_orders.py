"""Training steps whose gradients are reduced in an order of their own."""

from dataclasses import replace

import pytest

from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer as overlap_answer
from ropewalk.strategy import ORDERS, Order, Strategy
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.planned import plan_of, question_of

SLOW = read_cluster(given=Given(gpus=8, gpus_per_server=2, nics=1, nic_bandwidth=0.6e9, device="a100"))


def stepped(order, model="vgg16", cluster=SLOW, **more):
    question = TrainingQuestion(model, cluster, batch=256, usual=Strategy(order=order), memory_check=False, **more)
    return answer(question)


@pytest.mark.parametrize("degrees", [{}, {"tensor": 2}, {"pipeline": 2, "micro_batch": 8}])
@pytest.mark.parametrize("name", ORDERS)
def test_the_parts_of_a_step_add_up_and_computing_is_the_same_in_every_order(name, degrees):
    model = "vgg16" if not degrees else "gpt2"
    found, usual = (stepped(order, model, **degrees).statistics for order in (ORDERS[name].make, Order()))
    times = found.times
    assert times.compute_s + times.exposed_communication_s + times.bubble_s == pytest.approx(found.step_time_s)
    assert found.compute_s == pytest.approx(usual.compute_s)
    assert found.samples_per_s == pytest.approx(256 / found.step_time_s)


def test_layers_that_wait_for_their_own_gradients_make_shorter_steps():
    buckets, priority = (stepped(ORDERS[name].make).statistics.step_time_s for name in ("buckets", "priority"))
    assert priority < 0.99 * buckets


def test_steps_in_a_row_are_said_to_be_so():
    assert stepped(ORDERS["streamed"].make).notes == (
        "Gradients overlap with the next step: times are of one of 4 consecutive steps.",
    )


def test_steps_that_jitter_are_said_to_differ():
    assert "still differ" in stepped(ORDERS["priority"].make, jitter=0.05).notes[1]


def test_an_order_survives_the_plan_of_its_step():
    order = Order(fusion=0.0, partition_bytes=8e6, priority="forward", credit_bytes=32e6, across_steps=True)
    found = stepped(order)
    again = question_of(plan_of(found))
    assert again.strategy().order == order
    assert answer(again).statistics.step_time_s == found.statistics.step_time_s


def test_a_streamed_bucket_starts_up_once():
    def seconds(arrival, bucket):
        costly = NetworkUse(transport=Transport(start_up_s=0.01))
        return stepped(Order(bucket, arrival=arrival, across_steps=True), network=costly).statistics.step_time_s

    one_by_one, streamed = seconds("whole", 0.0), seconds("streamed", 1e12)
    assert streamed < one_by_one


@pytest.mark.parametrize("degrees", [{}, {"tensor": 2, "pipeline": 2, "micro_batch": 8}])
@pytest.mark.parametrize("partition", [float("inf"), 4e6])
def test_chunks_of_one_streamed_all_reduce_cost_no_launch(degrees, partition):
    def seconds(arrival, launch_s):
        order = replace(ORDERS["one-stream"].make, arrival=arrival, partition_bytes=partition)
        use = NetworkUse(transport=Transport(start_up_s=launch_s))
        return stepped(order, "gpt2", network=use, **degrees).statistics.step_time_s

    opened, launched = ([seconds(arrival, launch_s) for launch_s in (0.0, 0.05)] for arrival in ("released", "whole"))
    assert opened[0] == pytest.approx(launched[0])
    assert launched[1] > opened[1]
    if not degrees:  # nothing but gradients is launched
        assert opened[1] == pytest.approx(opened[0])


def test_a_streamed_all_reduce_keeps_to_the_bound_of_its_wire():
    """On one wire, without latencies, layers that preempt each other reach the preemptive optimum."""
    cluster = read_cluster(given=Given(gpus=2, gpus_per_server=1, nics=1, nic_bandwidth=0.6e9, device="a100"))
    free = NetworkUse(transport=Transport())
    usual = Strategy(order=ORDERS["one-stream"].make, optimiser="none")
    question = TrainingQuestion("vgg16", cluster, batch=256, usual=usual, network=free, memory_check=False)
    step = answer(question).statistics.step_time_s
    asked = OverlapQuestion("vgg16", cluster, batch=256, optimiser="none", network=free)
    bound = overlap_answer(asked, simulate=False).bounds.step_s
    assert bound * (1 - 1e-9) <= step <= 1.005 * bound
