"""Models of one resource agree with the flow run of the same plan on a quiet fabric, and differ on a shared one.

They are equal to rounding where a start-up means the same to both: in a library that works strictly in order it keeps
the network waiting (`Link.start_up_s`), for a network that is told what comes next it passes meanwhile
(`Link.latency_s`). Preemption in the network costs no start-up when it resumes, so it is compared without any.
"""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.collective.ring import ring_all_reduce
from ropewalk.fabric import IdealSwitch, LeafSpine
from ropewalk.overlap.buckets import buckets, groups_with_barrier_s
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import in_ready_order, planned, timed
from ropewalk.overlap.link import Link, ring_link
from ropewalk.overlap.on_network import as_handed_over, as_launched, as_scheduled, gradients_of
from ropewalk.overlap.policy import Order, Policy, fifo
from ropewalk.overlap.preemptive import preemptive_optimum
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.streamed import arrivals, tensor_after_tensor, tensor_of_chunk
from ropewalk.overlap.tensors import from_layers
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import Kind, lockstep, unroll
from ropewalk.task.passes import credit, cross_barrier, gradients_in, prioritise, with_barrier
from ropewalk.task.step import Act, StepSketch
from ropewalk.task.transport import Transport
from ropewalk.training.network import NetworkUse
from ropewalk.training.steady import run_gradients, steady_step_seconds

GB = 1e9
RANKS, START_UP, ALPHA = 3, 0.125, 0.0625
ROUNDS = 2 * (RANKS - 1) * ALPHA
QUIET = IdealSwitch(RANKS, bandwidth=GB).build()
COSTLY = NetworkUse(transport=Transport(start_up_s=START_UP, round_across_s=ALPHA))
FREE = NetworkUse(transport=Transport())
BARE = ring_link(RANKS, GB)
IN_ORDER = Link(BARE.bandwidth, START_UP + ROUNDS)
STEPS = 4


@st.composite
def models(draw, smallest=0):
    layers = draw(st.integers(1, 4))
    seconds = st.lists(st.integers(0, 6).map(float), min_size=layers, max_size=layers)
    owner = sorted(draw(st.lists(st.integers(0, layers - 1), min_size=1, max_size=5)))
    sizes = draw(
        st.lists(st.integers(smallest, 8).map(lambda size: size * GB), min_size=len(owner), max_size=len(owner))
    )
    return from_layers(sizes, backward_s=draw(seconds), forward_s=draw(seconds), layer=owner)


@st.composite
def policies(draw):
    return Policy(
        draw(st.sampled_from([GB, 3 * GB, inf])),
        draw(st.sampled_from([0.0, 2 * GB, 5 * GB, inf])),
        draw(st.sampled_from(list(Order))),
        barrier=draw(st.booleans()),
    )


def on_the_network(gradients, use, *, barrier=False):
    return steady_step_seconds((with_barrier if barrier else cross_barrier)(gradients, STEPS), QUIET, use)


@settings(max_examples=25)
@given(tensors=models(), policy=policies())
def test_a_schedule_takes_as_long_on_a_library_that_works_in_order(tensors, policy):
    run = schedule(tensors, IN_ORDER, policy)
    found = on_the_network(as_scheduled(gradients_of(tensors, RANKS), run), COSTLY, barrier=policy.barrier)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=25)
@given(tensors=models(smallest=1), policy=policies())
def test_start_ups_are_latency_for_a_network_that_is_told_what_comes_next(tensors, policy):
    # Where tensors have bytes: one without any has nothing that could queue behind others.
    run = schedule(tensors, Link(BARE.bandwidth, latency_s=START_UP + ROUNDS), policy)
    found = on_the_network(as_handed_over(gradients_of(tensors, RANKS), run), COSTLY, barrier=policy.barrier)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=25)
@given(tensors=models())
def test_strict_priority_on_every_link_is_the_best_preemptive_order(tensors):
    sums = one_stream_sums(tensors)
    best = sums.step_s(preemptive_optimum(sums, BARE).done_s)
    urgent = credit(prioritise(gradients_of(tensors, RANKS)), inf)
    assert on_the_network(urgent, FREE) == pytest.approx(best, rel=1e-9)


@settings(max_examples=25)
@given(data=st.data(), tensors=models(), arrival=st.sampled_from(list(Arrival)))
def test_fused_and_streamed_groups_take_as_long_as_they_are_said_to(data, tensors, arrival):
    order = tensors.in_ready_order
    ends = sorted({*data.draw(st.lists(st.integers(1, len(order)), max_size=3)), len(order)})
    sums = one_stream_sums(tensors)
    run = timed(sums, IN_ORDER, in_ready_order(sums, Groups.cut(order, ends), arrival), ROUNDS)
    found = on_the_network(as_launched(gradients_of(tensors, RANKS), run.launches), COSTLY)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=25)
@given(tensors=models(), arrival=st.sampled_from([Arrival.TOGETHER, Arrival.THROUGH]))
def test_plans_that_put_a_group_aside_take_as_long_as_they_are_said_to(tensors, arrival):
    groups = buckets(tensors, [4 * GB])
    run = planned(one_stream_sums(tensors), IN_ORDER, groups, arrival, ROUNDS)
    found = on_the_network(as_launched(gradients_of(tensors, RANKS), run.launches), COSTLY)
    assert found == pytest.approx(run.step_s, rel=1e-9)


@settings(max_examples=10)
@given(tensors=models())
def test_buckets_with_a_barrier_take_as_long_as_they_are_said_to(tensors):
    groups = buckets(tensors, [GB, 5 * GB])
    launches = in_ready_order(one_stream_sums(tensors), groups)
    found = on_the_network(as_launched(gradients_of(tensors, RANKS), launches), COSTLY, barrier=True)
    assert found == pytest.approx(groups_with_barrier_s(tensors, IN_ORDER, groups), rel=1e-9)


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_streamed_tensors_arrive_when_the_program_that_streams_them_delivers_them(mode):
    """The program whose rounds carry tensor after tensor, against the pass on the step."""
    widths = [2, 1, 3]
    program = ring_all_reduce([list(range(RANKS))])
    fused = tensor_after_tensor(program, widths)
    graph = unroll(lockstep(fused, sum(widths) * GB))
    trace = simulate(graph, shortest(QUIET, *np.array([[0, 1, 2], [1, 2, 0]])))
    ends = trace.end[graph.kind == Kind.TRANSFER]
    by_program = arrivals(fused, tensor_of_chunk(program, widths), ends).max(axis=1)

    tensors = from_layers([width * GB for width in widths], backward_s=[0.0] * 3, forward_s=[0.0] * 3)
    launches = in_ready_order(one_stream_sums(tensors), Groups(((2, 1, 0),)), Arrival.THROUGH)
    # Layers that take no time are equally urgent, and keep the order in which they are listed.
    one = as_launched(gradients_of(tensors, RANKS), launches)
    run = run_gradients(one, QUIET, NetworkUse(transport=Transport(), collectives=mode))
    assert np.sort(run.arrival_s) == pytest.approx(np.sort(by_program), rel=1e-9)
    assert run.arrival_s[run.woven.gradients.tensor.argsort()] == pytest.approx(by_program, rel=1e-9)


def test_order_at_the_host_waits_for_a_piece_where_priority_in_the_network_waits_for_nothing():
    """Layers of 2 s, tensors of 3, 6 and 3 s: whole tensors 20 s, pieces of 1 s 17 s, and priority on links 17 s."""
    fabric = IdealSwitch(2, bandwidth=GB).build()
    tensors = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2] * 3, forward_s=[2] * 3)
    gradients = gradients_of(tensors, 2)

    def at_the_host(partition_bytes):
        run = schedule(tensors, ring_link(2, GB), Policy(partition_bytes))
        return steady_step_seconds(cross_barrier(as_scheduled(gradients, run), STEPS), fabric, FREE)

    on_links = credit(prioritise(cross_barrier(gradients, STEPS)), inf)
    assert [at_the_host(size) for size in (inf, 3 * GB, GB)] == pytest.approx([20.0, 18.0, 17.0])
    assert steady_step_seconds(on_links, fabric, FREE) == pytest.approx(17.0)


# A fabric that is shared: four leafs with four hosts and two spines each, 2:1, and ECMP.
SHARED = LeafSpine(leafs=4, spines=2, hosts_per_leaf=4, bandwidth=GB).build()
ACROSS = np.arange(16).reshape(4, 4).T.ravel().tolist()
"""A ring that leaves its leaf in every hop."""
ECMP = NetworkUse(routing="ecmp", transport=Transport(start_up_s=START_UP, round_across_s=ALPHA))


def test_collisions_make_a_step_more_than_twice_as_long_as_the_model_of_a_nic_says():
    tensors = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2] * 3, forward_s=[2] * 3)
    gradients = gradients_of(tensors, 16, ACROSS)
    start_up = START_UP + 30 * ALPHA
    one = from_layers([GB], backward_s=[0.0], forward_s=[0.0])
    alone = run_gradients(gradients_of(one, 16, ACROSS), SHARED, ECMP).arrival_s[0]
    measured = Link(GB / (alone - start_up), start_up)
    nominal = Link(ring_link(16, GB).bandwidth, start_up)
    # Three flows of four meet on one of the two uplinks.
    assert nominal.bandwidth / measured.bandwidth == pytest.approx(3.0)
    for policy in (Policy(3 * GB), fifo()):
        run = schedule(tensors, nominal, policy)
        repeat = with_barrier if policy.barrier else cross_barrier
        found = steady_step_seconds(repeat(as_scheduled(gradients, run), STEPS), SHARED, ECMP)
        assert 2.0 < found / run.step_s < 3.0
        # One at a time, a collective takes its share of the worst link: with that speed the model is right again.
        assert found == pytest.approx(schedule(tensors, measured, policy).step_s, rel=1e-9)


def test_two_groups_on_one_uplink_are_slower_than_either_measured_alone():
    """Two groups of two ranks on two leafs with one cable between them: what the model of one resource cannot see."""
    fabric = LeafSpine(leafs=2, spines=1, hosts_per_leaf=2, bandwidth=GB).build()

    def both(second):
        sketch, tensor = StepSketch(4), []
        for group, size in (((0, 2), 4 * GB), ((1, 3), second)):
            made = [sketch.compute(rank, 1.0, label="layer backward") for rank in group]
            sums = sketch.collective(Act.ALL_REDUCE, group, size, after=made, label="gradients")
            for rank in group:
                sketch.compute(rank, 1.0, after=[sums], label="update")
            tensor += [-1, -1, 0, -1, -1]
        return run_gradients(gradients_in(sketch.step(), tensor, ["layer"]), fabric, FREE)

    assert both(0.0).arrival_s[0] == pytest.approx(1 + 4.0)
    assert both(4 * GB).arrival_s == pytest.approx([1 + 8.0] * 2)
    assert both(2 * GB).arrival_s == pytest.approx([1 + 6.0, 1 + 4.0])
