"""Models of one resource agree with the flow run of the same plan on a quiet fabric, and differ on a shared one.

They are equal to rounding where a start-up means the same to both: in a library that works strictly in order it keeps
the network waiting (`Link.start_up_s`), for a network that is told what comes next it passes meanwhile
(`Link.latency_s`). Preemption in the network costs no start-up when it resumes, so it is compared without any.
"""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordered_models import step_seconds
from streamed_programs import arrivals, tensor_after_tensor, tensor_of_chunk

from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.fabric import IdealSwitch, LeafSpine
from ropewalk.overlap.buckets import buckets, groups_with_barrier_s
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import in_ready_order, planned, timed
from ropewalk.overlap.link import Link, ring_link
from ropewalk.overlap.orders import order_of_groups, order_of_launches, order_of_run
from ropewalk.overlap.policy import Discipline, OverlapPolicy, fifo
from ropewalk.overlap.preemptive import preemptive_optimum
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.simulated import measured_link
from ropewalk.overlap.tensors import from_layers
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.strategy import ORDERS, Order
from ropewalk.task import TaskKind, lockstep, unroll
from ropewalk.task.transport import Transport
from ropewalk.training.network import NetworkUse

GB = 1e9
RANKS, START_UP, ALPHA = 3, 0.125, 0.0625
ROUNDS = 2 * (RANKS - 1) * ALPHA
QUIET = IdealSwitch(RANKS, bandwidth=GB).build()
COSTLY = NetworkUse(transport=Transport(start_up_s=START_UP, round_across_s=ALPHA))
FREE = NetworkUse(transport=Transport())
BARE = ring_link(RANKS, GB)
IN_ORDER = Link(BARE.bandwidth, START_UP + ROUNDS)


@st.composite
def models(draw):
    """Layers, some of which have a tensor."""
    layers = draw(st.integers(1, 5))
    seconds = st.lists(st.integers(0, 6).map(float), min_size=layers, max_size=layers)
    owner = sorted(draw(st.sets(st.integers(0, layers - 1), min_size=1)))
    sizes = draw(st.lists(st.integers(1, 8).map(lambda size: size * GB), min_size=len(owner), max_size=len(owner)))
    return from_layers(sizes, backward_s=draw(seconds), forward_s=draw(seconds), layer=owner)


@st.composite
def policies(draw):
    return OverlapPolicy(
        draw(st.sampled_from([GB, 3 * GB, inf])),
        draw(st.sampled_from([0.0, 2 * GB, 5 * GB, inf])),
        draw(st.sampled_from(list(Discipline))),
        barrier=draw(st.booleans()),
    )


def on_the_network(tensors, order, use):
    return step_seconds(tensors, RANKS, order, QUIET, use)


@settings(max_examples=20)
@given(tensors=models(), policy=policies())
def test_a_schedule_takes_as_long_on_a_library_that_works_in_order(tensors, policy):
    run = schedule(tensors, IN_ORDER, policy)
    assert on_the_network(tensors, order_of_run(run), COSTLY) == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=20)
@given(tensors=models(), policy=policies())
def test_start_ups_are_latency_for_a_network_that_is_told_what_comes_next(tensors, policy):
    run = schedule(tensors, Link(BARE.bandwidth, latency_s=START_UP + ROUNDS), policy)
    order = replace(order_of_run(run), priority="queued", credit_bytes=policy.credit_bytes)
    assert on_the_network(tensors, order, COSTLY) == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=20)
@given(tensors=models())
def test_strict_priority_on_every_link_is_the_best_preemptive_order(tensors):
    sums = one_stream_sums(tensors)
    best = sums.step_s(preemptive_optimum(sums, BARE).done_s)
    assert on_the_network(tensors, ORDERS["priority"].make, FREE) == pytest.approx(best, rel=1e-9)


@settings(max_examples=20)
@given(data=st.data(), tensors=models(), arrival=st.sampled_from(list(Arrival)))
def test_fused_and_streamed_groups_take_as_long_as_they_are_said_to(data, tensors, arrival):
    order = tensors.in_ready_order
    ends = sorted({*data.draw(st.lists(st.integers(1, len(order)), max_size=3)), len(order)})
    sums = one_stream_sums(tensors)
    run = timed(sums, IN_ORDER, in_ready_order(sums, Groups.cut(order, ends), arrival), ROUNDS)
    found = on_the_network(tensors, order_of_launches(tensors, run.launches), COSTLY)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=20)
@given(tensors=models(), arrival=st.sampled_from([Arrival.TOGETHER, Arrival.THROUGH]))
def test_plans_that_put_a_group_aside_take_as_long_as_they_are_said_to(tensors, arrival):
    groups = buckets(tensors, [4 * GB])
    run = planned(one_stream_sums(tensors), IN_ORDER, groups, arrival, ROUNDS)
    found = on_the_network(tensors, order_of_launches(tensors, run.launches), COSTLY)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=10)
@given(tensors=models())
def test_buckets_with_a_barrier_take_as_long_as_they_are_said_to(tensors):
    groups = buckets(tensors, [GB, 5 * GB])
    found = on_the_network(tensors, order_of_groups(tensors, groups), COSTLY)
    assert found == pytest.approx(groups_with_barrier_s(tensors, IN_ORDER, groups), rel=1e-9)


def test_a_link_that_is_measured_is_the_closed_form_of_the_ring():
    found = measured_link(QUIET, RANKS, COSTLY)
    assert (found.bandwidth, found.start_up_s) == pytest.approx((IN_ORDER.bandwidth, IN_ORDER.start_up_s))


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_streamed_tensors_arrive_when_the_program_that_streams_them_delivers_them(mode):
    """The program whose rounds carry tensor after tensor, against the layers that wait for each tensor in a step."""
    widths = [2, 1, 3]
    program = ring_all_reduce([list(range(RANKS))])
    fused = tensor_after_tensor(program, widths)
    graph = unroll(lockstep(fused, sum(widths) * GB))
    trace = simulate(graph, shortest(QUIET, *np.array([[0, 1, 2], [1, 2, 0]])))
    ends = trace.end[graph.kind == TaskKind.TRANSFER]
    by_program = arrivals(fused, tensor_of_chunk(program, widths), ends).max(axis=1)
    use = NetworkUse(transport=Transport(), collectives=mode)
    for layer, arrival in enumerate(by_program.tolist()):
        # The forward pass of one layer takes so long that the step ends with it.
        forward = [0.0] * 3
        forward[layer] = 100.0
        tensors = from_layers([width * GB for width in widths], backward_s=[0.0] * 3, forward_s=forward)
        order = replace(order_of_groups(tensors, Groups(((2, 1, 0),))), arrival="streamed", across_steps=True)
        assert on_the_network(tensors, order, use) == pytest.approx(arrival + 100.0, rel=1e-9)


def test_order_at_the_host_waits_for_a_piece_where_priority_in_the_network_waits_for_nothing():
    """Layers of 2 s, tensors of 3, 6 and 3 s: whole tensors 20 s, pieces of 1 s 17 s, and priority on links 17 s."""
    fabric = IdealSwitch(2, bandwidth=GB).build()
    tensors = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2] * 3, forward_s=[2] * 3)

    def at_the_host(partition_bytes):
        run = schedule(tensors, ring_link(2, GB), OverlapPolicy(partition_bytes))
        return step_seconds(tensors, 2, order_of_run(run), fabric, FREE)

    assert [at_the_host(size) for size in (inf, 3 * GB, GB)] == pytest.approx([20.0, 18.0, 17.0])
    assert step_seconds(tensors, 2, ORDERS["priority"].make, fabric, FREE) == pytest.approx(17.0)


def test_three_layers_in_the_orders_of_the_literature():
    """Layers of 2 s, tensors of 3, 6 and 3 s, without start-up latency: first come 20 s, with a barrier or without."""
    fabric = IdealSwitch(2, bandwidth=GB).build()
    tensors = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2] * 3, forward_s=[2] * 3)
    orders = {across: Order(fusion=0.0, across_steps=across) for across in (False, True)}
    steps = {across: step_seconds(tensors, 2, order, fabric, FREE) for across, order in orders.items()}
    assert steps == pytest.approx({False: 20.0, True: 20.0})


# A fabric that is shared: four leafs with four hosts each and one spine, 4:1.
SHARED = LeafSpine(leafs=4, spines=1, hosts_per_leaf=4, bandwidth=GB).build()
CROSSING = NetworkUse(algorithm="mesh", transport=Transport(start_up_s=START_UP))


@pytest.mark.parametrize("policy", [OverlapPolicy(3 * GB), fifo()])
def test_collisions_make_a_step_longer_than_nics_say_and_a_measured_link_knows_them(policy):
    tensors = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2] * 3, forward_s=[2] * 3)
    measured = measured_link(SHARED, 16, CROSSING)
    nominal = ring_link(16, GB)
    assert nominal.bandwidth > 1.5 * measured.bandwidth
    run = schedule(tensors, measured, policy)
    found = step_seconds(tensors, 16, order_of_run(run), SHARED, CROSSING)
    # One at a time, a collective takes its share of the worst link: with that speed the model is right again.
    assert found == pytest.approx(run.step_s, rel=1e-9)
    assert found > 1.5 * schedule(tensors, nominal, policy).step_s
