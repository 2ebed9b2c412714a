"""A link whose reductions have to be added up: sent and added at the same time, or in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.mixer import Mixer
from ropewalk.errors import FabricError
from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.dear import dear
from ropewalk.overlap.groups import Arrival, Groups, costs_of
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import planned
from ropewalk.overlap.link import Link, ring_link, server_link
from ropewalk.overlap.policy import fifo
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.study import answer
from ropewalk.overlap.tensors import from_layers
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse

HALF = Link(1.0, mixer=Mixer(0.5), added=0.5)
"""Adding takes as long as sending."""
QUARTER = Link(1.0, mixer=Mixer(0.25), added=0.5)
"""Adding takes twice as long."""
TENSORS = from_layers([4, 4], backward_s=[1, 1], forward_s=[1, 1])


def test_a_ring_adds_what_it_reduces_and_nothing_else():
    assert ring_link(8, 1e9, mixer=Mixer(1e9)).added == 7 / 8
    assert ring_link(8, 1e9, mixer=Mixer(1e9)).half_seconds(8e9) == (7.0, 7.0)


def test_free_mixing_leaves_a_link_as_it_was():
    assert ring_link(8, 1e9).throughput == ring_link(8, 1e9).bandwidth


@pytest.mark.parametrize(("link", "piped", "in_turn"), [(HALF, 4.0, 8.0), (QUARTER, 8.0, 12.0)])
def test_a_piped_operation_takes_the_slower_of_both_and_another_their_sum(link, piped, in_turn):
    assert link.seconds(4) == piped
    assert replace(link, piped=False).seconds(4) == in_turn


def test_dear_waits_for_what_its_reduce_scatters_add():
    one = Groups.one(TENSORS.in_ready_order)
    assert dear(TENSORS, Link(1.0), one).step_s == 2 + 4 + 4 + 2
    assert dear(TENSORS, HALF, one).step_s == 2 + 8 + 4 + 2
    assert dear(TENSORS, QUARTER, one).step_s == 2 + 16 + 4 + 2


def test_what_is_gathered_tensor_by_tensor_is_held_back_until_all_is_added():
    costs = costs_of(QUARTER, Arrival.GATHERED)
    assert (costs.seconds_per_byte, costs.held_back) == (2.5, 0.8)
    run = planned(one_stream_sums(TENSORS), QUARTER, Groups.one(TENSORS.in_ready_order), Arrival.GATHERED)
    assert run.arrival_s.tolist() == [2 + 16 + 2, 2 + 16 + 4]


def test_servers_add_what_is_pushed_and_not_what_is_pulled():
    link = server_link(workers=4, servers=2, bandwidth=2.0, mixer=Mixer(1.0))
    assert (link.bandwidth, link.throughput) == (1.0, 0.5)
    run = schedule(from_layers([4], backward_s=[1], forward_s=[1]), link, fifo())
    assert run.step_s == 1 + 8 + 4 + 1


def test_no_order_is_below_the_bound_of_the_busier_of_wire_and_adder():
    bounds = [lower_bounds(TENSORS, link).step_s for link in (Link(1.0), HALF, QUARTER)]
    assert bounds[0] == bounds[1] < bounds[2]
    for link, bound in zip((HALF, QUARTER), bounds[1:], strict=True):
        assert schedule(TENSORS, link, fifo()).step_s >= bound


@pytest.mark.parametrize("added", [-0.5, np.inf, np.nan])
def test_bytes_to_add_must_be_a_number(added):
    with pytest.raises(FabricError, match="ring"):
        Link(1.0, added=added)


def test_estimates_of_a_slow_adder_are_what_the_network_does():
    costs = Transport(start_up_s=1e-5, mixer=Mixer(2e9))
    cluster = read_cluster("2x2", Given(device="h200", nics=1, nic_bandwidth=12.5e9))
    asked = OverlapQuestion("vgg16", cluster, optimiser="none", network=NetworkUse(transport=costs))
    found = answer(asked)
    assert found.link.added == pytest.approx(3 / 4, rel=1e-9)
    assert found.link.throughput < found.link.bandwidth
    assert "and reduction" in found.why()
    for name in ("fifo", "merged", "fused"):
        assert found.method(name).simulated_s == pytest.approx(found.method(name).step_s, rel=1e-9)
