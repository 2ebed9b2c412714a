"""Laws of heads, tails, groups and launches."""

from __future__ import annotations

import numpy as np
from gather_phases import best_gather_phase, gather_phase_s, streamed_gather_phase_s
from grouping_oracles import fuse_exactly, judge, largest_subset
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.buckets import buckets, groups_with_barrier_s
from ropewalk.overlap.dear import dear
from ropewalk.overlap.fusion import fuse
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums, step_graph
from ropewalk.overlap.launches import cut_as_planned, in_ready_order, planned, timed, without_useless_cuts
from ropewalk.overlap.link import Link
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.plans import fused_plan, streamed_plan
from ropewalk.overlap.policy import fifo
from ropewalk.overlap.preemptive import preemptive_jobs, preemptive_optimum
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.tensors import from_layers

NEARLY = 1e-9
whole = st.integers(0, 12)
jobs = st.lists(st.tuples(whole, whole, whole), min_size=1, max_size=8)


@st.composite
def models(draw, most=7):
    """Layers in which every one reads an earlier one or two; times and sizes are multiples of a half."""
    count = draw(st.integers(1, most))
    halves = st.lists(st.integers(0, 10).map(lambda n: n / 2), min_size=count, max_size=count)
    inputs = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, layer - 1), min_size=1, max_size=2)))) if layer else ()
        for layer in range(count)
    )
    return from_layers(draw(halves), backward_s=draw(halves), forward_s=draw(halves), inputs=inputs)


links = st.builds(Link, bandwidth=st.sampled_from([0.5, 1.0, 2.0]), start_up_s=st.sampled_from([0.0, 0.25, 1.0, 4.0]))
arrivals = st.sampled_from(list(Arrival))


@given(jobs)
def test_largest_tail_first_equals_the_largest_subset(listed):
    columns = list(zip(*listed, strict=True))
    assert preemptive_jobs(*columns).value_s == largest_subset(*columns)


@given(jobs)
def test_the_network_works_on_one_job_at_a_time_and_on_each_for_as_long_as_it_takes(listed):
    head, seconds, _ = columns = list(zip(*listed, strict=True))
    best = preemptive_jobs(*columns)
    assert (best.begin_s[1:] >= best.end_s[:-1]).all()
    assert (best.begin_s >= np.array(head)[best.job]).all()
    worked = np.zeros(len(listed))
    np.add.at(worked, best.job, best.end_s - best.begin_s)
    assert worked.tolist() == list(seconds)


@given(jobs)
def test_the_rule_is_what_a_slow_clock_does_slot_by_slot(listed):
    head, seconds, tail = (list(column) for column in zip(*listed, strict=True))
    left, done = seconds.copy(), [max(0, start) for start in head]
    order = sorted(range(len(listed)), key=lambda job: head[job])
    now = 0
    while any(left):
        ready = [job for job in order if left[job] and head[job] <= now]
        now += 1
        if ready:
            job = max(ready, key=lambda job: tail[job])
            left[job] -= 1
            done[job] = now
    best = preemptive_jobs(head, seconds, tail)
    # Jobs that take no time are done at once in the slow clock, and when it is their turn in the kernel.
    assert [best.done_s[job] for job in order if seconds[job]] == [done[job] for job in order if seconds[job]]


@given(models(), links)
def test_the_relaxation_is_a_lower_bound_of_one_stream_and_one_stream_is_exact(tensors, link):
    graph = step_graph(tensors)
    relaxed, stream = graph.sums(link), graph.on_one_stream().sums(link)
    free, real = preemptive_optimum(relaxed, link), preemptive_optimum(stream, link)
    assert relaxed.step_s(free.done_s) <= stream.step_s(real.done_s) + NEARLY
    assert abs(graph.step_s(free.done_s) - relaxed.step_s(free.done_s)) < NEARLY
    assert abs(tensors.step_s(real.done_s) - stream.step_s(real.done_s)) < NEARLY
    assert abs(graph.on_one_stream().step_s(real.done_s) - stream.step_s(real.done_s)) < NEARLY


@given(models(), links, arrivals)
def test_grown_groups_are_never_better_than_the_best_nor_worse_than_none(tensors, link, arrival):
    sums = one_stream_sums(tensors)
    exact, grown = fuse_exactly(sums, link, arrival), fuse(sums, link, arrival)
    none = judge(sums, link, Groups.singles(sums.in_ready_order), arrival)
    assert exact.value_s <= grown.value_s + NEARLY
    assert exact.value_s <= none + NEARLY
    assert abs(judge(sums, link, grown.groups, arrival) - grown.value_s) < NEARLY


@given(models(), links)
def test_streaming_a_group_never_makes_it_later(tensors, link):
    sums = one_stream_sums(tensors)
    for groups in (Groups.one(sums.in_ready_order), buckets(tensors, (4.0,))):
        together, gathered, through = (judge(sums, link, groups, arrival) for arrival in Arrival)
        assert through <= gathered + NEARLY
        assert gathered <= together + NEARLY


@given(models(), links, arrivals, st.sampled_from([0.0, 0.5, 1.0]))
def test_plans_move_every_byte_once_and_are_bounded_by_what_the_judge_and_the_bounds_say(tensors, link, arrival, part):
    sums, rounds_s = one_stream_sums(tensors), part * link.start_up_s
    groups = buckets(tensors, (5.0,))
    bound = lower_bounds(tensors, link).step_s
    cut = cut_as_planned(sums, link, groups, arrival, rounds_s)
    for launches in (cut, without_useless_cuts(sums, link, cut, rounds_s), in_ready_order(sums, groups, arrival)):
        moved = np.zeros(len(launches.groups))
        np.add.at(moved, launches.group, launches.size_bytes)
        wanted = [tensors.size_bytes[list(group)].sum() for group in launches.groups.members]
        np.testing.assert_allclose(moved, wanted, atol=NEARLY)
        run = timed(sums, link, launches, rounds_s)
        assert (run.arrival_s >= sums.head_s - NEARLY).all()
        assert run.step_s >= judge(sums, link, groups, arrival, rounds_s) - NEARLY
        assert run.step_s >= bound - NEARLY
        assert abs(tensors.step_s(run.arrival_s) - run.step_s) < NEARLY


@given(models(), st.sampled_from([0.5, 1.0, 2.0]))
def test_without_start_ups_the_plan_for_single_tensors_reaches_the_bound(tensors, bandwidth):
    sums, link = one_stream_sums(tensors), Link(bandwidth)
    run = planned(sums, link, Groups.singles(sums.in_ready_order))
    assert abs(run.step_s - lower_bounds(tensors, link).step_s) < NEARLY


@given(models(), links)
def test_plans_are_never_worse_than_merged_gradients_and_streams_never_worse_than_plans(tensors, link):
    plan = fused_plan(tensors, link)
    assert plan.step_s <= groups_with_barrier_s(tensors, link, merged_gradients(tensors, link)) + NEARLY
    for part in (0.0, 0.5, 1.0):
        streamed = streamed_plan(tensors, link, rounds_s=part * link.start_up_s)
        assert streamed.step_s <= plan.step_s + NEARLY
        assert streamed.step_s >= lower_bounds(tensors, link).step_s - NEARLY


@given(models(), links, st.floats(0.5, 20.0))
def test_taking_sums_apart_does_not_beat_the_bound(tensors, link, cap):
    assert dear(tensors, link, buckets(tensors, (cap,))).step_s >= lower_bounds(tensors, link).step_s - NEARLY


@given(st.lists(st.tuples(whole, whole), min_size=1, max_size=7), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_the_best_groups_of_a_gather_phase_are_the_best_of_all_and_streaming_is_better_still(tensors, start_up):
    gather, forward = zip(*tensors, strict=True)
    count = len(tensors)
    every = [
        gather_phase_s(gather, forward, [end for end in range(1, count) if cuts >> (end - 1) & 1] + [count], start_up)
        for cuts in range(1 << (count - 1))
    ]
    best, ends = best_gather_phase(gather, forward, start_up)
    assert best == min(every) == gather_phase_s(gather, forward, ends, start_up)
    assert streamed_gather_phase_s(gather, forward, start_up) <= best


@given(models(), links)
def test_single_tensors_behind_a_barrier_are_what_a_queue_without_an_order_does(tensors, link):
    alone = Groups.singles(tensors.in_ready_order)
    queue = schedule(tensors, link, fifo())
    assert abs(groups_with_barrier_s(tensors, link, alone) - queue.step_s) < NEARLY
