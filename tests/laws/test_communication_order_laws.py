"""Laws of handing gradients over: the kernel is what it says, bounds hold, and theorems are theorems."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_reference import World, run_steps

from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.policy import CreditReturn, CreditWindow, Discipline, OverlapPolicy, fifo
from ropewalk.overlap.preemptive import preemptive_jobs
from ropewalk.overlap.scheduler import OverlapRun, schedule
from ropewalk.overlap.tensors import Tensors, from_layers

QUARTERS = st.integers(0, 8).map(lambda count: Fraction(count, 4))


@st.composite
def models(draw: st.DrawFn) -> Tensors:
    """Up to seven layers with none, one or several tensors each; whole seconds and bytes, so that sums are exact."""
    layers = draw(st.integers(1, 7))
    seconds = st.lists(st.integers(0, 6), min_size=layers, max_size=layers)
    owner = sorted(draw(st.lists(st.integers(0, layers - 1), min_size=1, max_size=9)))
    sizes = draw(st.lists(st.integers(0, 12), min_size=len(owner), max_size=len(owner)))
    return from_layers(sizes, backward_s=draw(seconds), forward_s=draw(seconds), layer=owner)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Tensors, Link, OverlapPolicy]:
    tensors = draw(models())
    partition = draw(st.sampled_from([1.0, 2.0, 3.0, 5.0, inf]))
    largest = float(min(partition, tensors.size_bytes.max()))
    skip = draw(st.booleans())
    credit = draw(st.sampled_from([0.0, largest + 1, largest + 4, inf] if skip else [0.0, 1.0, 3.0, 8.0, inf]))
    link = Link(
        float(draw(st.sampled_from([1, 2, 4]))), float(draw(QUARTERS)), float(draw(QUARTERS)),
        draw(st.sampled_from(list(ExchangeKind))),
    )  # fmt: skip
    policy = OverlapPolicy(
        partition, max(credit, partition) if skip and credit > 0 and partition < inf else credit,
        draw(st.sampled_from(list(Discipline))), CreditWindow.SKIP if skip else CreditWindow.OVERDRAW,
        draw(st.sampled_from(list(CreditReturn))), draw(st.booleans()),
    )  # fmt: skip
    return tensors, link, policy


def in_plain_python(tensors: Tensors, link: Link, policy: OverlapPolicy) -> World:
    return World(
        [int(size) for size in tensors.size_bytes], tensors.layer.tolist(),
        [int(seconds) for seconds in tensors.backward_s], [int(seconds) for seconds in tensors.forward_s],
        Fraction(link.bandwidth), Fraction(link.start_up_s), Fraction(link.latency_s), link.duplex,
        policy.partition_bytes, policy.credit_bytes, policy.discipline is Discipline.PRIORITY,
        policy.window is CreditWindow.SKIP, policy.credit_return is CreditReturn.PULL, policy.barrier,
    )  # fmt: skip


def pushed(run: OverlapRun) -> list[tuple[int, int]]:
    """(tensor, piece) in the order on the network."""
    return list(zip(run.pieces.tensor[run.order].tolist(), run.pieces.number[run.order].tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_three_steps_in_plain_python_are_three_times_the_step_of_the_kernel(
    world: tuple[Tensors, Link, OverlapPolicy],
) -> None:
    tensors, link, policy = world
    run = schedule(tensors, link, policy)
    seen = run_steps(in_plain_python(*world), 3)
    assert [float(seen.forward_end[at + 1] - seen.forward_end[at]) for at in range(2)] == [run.step_s] * 2
    for step in range(3):
        begin = seen.forward_end[step]
        assert [float(there - begin) for there in seen.available[step]] == run.available_s.tolist()
    assert seen.pushed == 3 * pushed(run)
    last = max(float(max(seen.available[-1])), float(seen.forward_end[-1]) + tensors.backward_end_s)
    assert run.seconds_of(3) == last


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_no_byte_is_lost_and_no_resource_does_two_things_at_once(world: tuple[Tensors, Link, OverlapPolicy]) -> None:
    tensors, link, policy = world
    run = schedule(tensors, link, policy)
    carried = np.bincount(run.pieces.tensor, weights=run.pieces.size_bytes, minlength=len(tensors))
    assert carried.tolist() == tensors.size_bytes.tolist()
    assert (run.push_start_s >= tensors.ready_s[run.pieces.tensor]).all()
    ways = [(run.push_start_s, run.push_end_s)]
    if link.duplex:
        assert (run.pull_start_s >= run.push_end_s).all()
        ways.append((run.pull_start_s, run.pull_end_s))
    for start, end in ways:
        assert (start[run.order][1:] >= end[run.order][:-1]).all()
    assert run.step_s >= tensors.compute_s


@settings(max_examples=300, deadline=None)
@given(models(), st.sampled_from(list(ExchangeKind)))
def test_pieces_of_one_byte_in_model_order_reach_the_preemptive_optimum(tensors: Tensors, kind: ExchangeKind) -> None:
    """The theorem of ByteScheduler: nothing is better than always serving the tensor that is needed first.

    With whole seconds and bytes, pieces of one second are as good as infinitely small ones. Tensors without bytes are
    left out: a piece of nothing still waits for the piece before it.
    """
    tensors = replace(tensors, size_bytes=tensors.size_bytes + 1)
    optimum = preemptive_jobs(tensors.ready_s, tensors.size_bytes, tensors.tail_s).value_s
    run = schedule(tensors, Link(1.0, kind=kind), OverlapPolicy(partition_bytes=1))
    ideal = max(optimum, tensors.compute_s)
    last_pull = 1.0 if kind is ExchangeKind.PARAMETER_SERVER else 0.0
    assert ideal <= run.step_s <= ideal + last_pull
    if kind is ExchangeKind.ALL_REDUCE:
        assert run.step_s == ideal


@settings(max_examples=300, deadline=None)
@given(models(), st.sampled_from([1.0, 2.0, 3.0, 5.0, 12.0]), QUARTERS, st.sampled_from(list(ExchangeKind)))
def test_a_step_exceeds_the_ideal_by_its_start_ups_and_one_piece_each_way(
    tensors: Tensors, partition: float, start_up: Fraction, kind: ExchangeKind
) -> None:
    """ideal + θ·pieces + (δ/B + θ), and (δ/B + θ) once more where what was pushed must be pulled."""
    link = Link(2.0, float(start_up), kind=kind)
    policy = OverlapPolicy(partition)
    ideal = max(
        preemptive_jobs(tensors.ready_s, tensors.size_bytes / link.bandwidth, tensors.tail_s).value_s, tensors.compute_s
    )
    pieces = policy.pieces(tensors.size_bytes).sum()
    ways = 2 if link.duplex else 1
    bound = ideal + link.start_up_s * pieces + ways * link.seconds(partition)
    assert schedule(tensors, link, policy).step_s <= bound


@settings(max_examples=200, deadline=None)
@given(models(), st.sampled_from([1.0, 3.0, inf]), st.sampled_from(list(ExchangeKind)))
def test_with_unlimited_credit_priorities_order_only_what_appears_together(
    tensors: Tensors, partition: float, kind: ExchangeKind
) -> None:
    """What has been handed over cannot be called back, so tensors leave in the order in which they appear."""
    link = Link(1.0, kind=kind)
    run = schedule(tensors, link, OverlapPolicy(partition, credit_bytes=inf))
    left = run.pieces.tensor[run.order]
    assert (np.diff(tensors.ready_s[left]) >= 0).all()
    if len(np.unique(tensors.ready_s)) == len(tensors):
        in_turn = schedule(tensors, link, OverlapPolicy(partition, credit_bytes=inf, discipline=Discipline.FIFO))
        assert run.available_s.tolist() == in_turn.available_s.tolist()


@settings(max_examples=200, deadline=None)
@given(models(), st.sampled_from(list(ExchangeKind)))
def test_in_ready_order_a_barrier_costs_nothing_where_the_first_layer_has_a_tensor(
    tensors: Tensors, kind: ExchangeKind
) -> None:
    """The first layer's gradient is the last to appear, so whoever waits for it waits for all."""
    sizes = np.concatenate([[2.0], tensors.size_bytes])
    with_first = from_layers(
        sizes, backward_s=tensors.backward_s, forward_s=tensors.forward_s, layer=np.concatenate([[0], tensors.layer])
    )
    link = Link(1.0, 0.5, kind=kind)
    assert schedule(with_first, link, fifo(barrier=True)).step_s == schedule(
        with_first, link, fifo(barrier=False)
    ).step_s  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(worlds(), st.sampled_from([2.0, 8.0]))
def test_a_world_in_which_everything_takes_longer_is_the_same_world(
    world: tuple[Tensors, Link, OverlapPolicy], factor: float
) -> None:
    tensors, link, policy = world
    slower = replace(link, bandwidth=link.bandwidth / factor, start_up_s=link.start_up_s * factor,
                     latency_s=link.latency_s * factor)  # fmt: skip
    stretched = schedule(tensors.scaled(factor), slower, policy)
    assert stretched.step_s == pytest.approx(factor * schedule(tensors, link, policy).step_s, rel=1e-12)
