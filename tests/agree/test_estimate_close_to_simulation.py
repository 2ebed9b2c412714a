"""The estimate that guides the search beside the flow simulation that answers: exact where quiet, close elsewhere."""

from random import Random

import numpy as np
import pytest
from tiny_seats import circle, lowered, priced, recommender, stacked, switch, with_experts

from ropewalk.codesign.estimate import estimate
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.seats import space_of
from ropewalk.strategy.seating import Manner, Seat, Seating, coset


def both(pricer, seating, network, **rest):
    simulated = time_step(lowered(pricer, seating, **rest), network).seconds
    return estimate(pricer, seating, LinkLoads(network, seating.servers), **rest), simulated


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("network", [switch, circle])
def test_one_layer_is_exact(degree, network):
    pricer = priced(stacked(widths=(64, 32)), gpus=2)
    estimated, simulated = both(pricer, Seating(6, (Seat(coset(6, degree)),)), network(6, 1e5))
    assert estimated == pytest.approx(simulated, rel=1e-9)


@pytest.mark.parametrize("bucket_bytes", [0.0, 9000.0, 1e9])
def test_layers_on_all_servers_are_exact(bucket_bytes):
    pricer = priced(stacked(widths=(16, 32, 64, 8)))
    seating = Seating(6, (Seat(tuple(range(6))),) * 3)
    estimated, simulated = both(pricer, seating, switch(6, 1e5), bucket_bytes=bucket_bytes)
    assert estimated == pytest.approx(simulated, rel=1e-9)


def test_stages_without_sums_are_exact():
    """One server a stage: transfers and computation follow each other, micro-batch by micro-batch."""
    pricer = priced(stacked(widths=(16, 32, 64, 8)), micro_batches=4)
    seating = Seating(3, tuple(Seat((stage,)) for stage in range(3)))
    estimated, simulated = both(pricer, seating, switch(3, 1e9))
    assert estimated == pytest.approx(simulated, rel=1e-9)


def test_experts_alone_are_exact():
    pricer = priced(with_experts())
    seating = Seating(4, (Seat((0, 1, 2, 3)), Seat((0, 1, 2, 3), Manner.EXPERT)))
    estimated, simulated = both(pricer, seating, switch(4, 1e9, 0.0))
    assert estimated == pytest.approx(simulated, rel=1e-3)


@pytest.mark.parametrize("network", [switch, circle])
def test_the_start_of_a_recommender_is_within_a_sixth(network):
    """Tables on some servers, everything else on all of them: transfers and sums overlap."""
    pricer = priced(recommender(tables=6, width=16))
    space = space_of(pricer, 6)
    for bandwidth in (1e5, 1e6, 1e8):
        estimated, simulated = both(pricer, space.seating(space.start), network(6, bandwidth))
        assert estimated == pytest.approx(simulated, rel=0.15)


@pytest.mark.parametrize("network", [switch, circle])
def test_random_designs_come_in_nearly_the_same_order(network):
    pricer = priced(recommender(tables=4, width=16))
    space = space_of(pricer, 6)
    draw = Random(1)
    seatings = [space.seating([draw.choice(options) for options in space.options]) for _ in range(40)]
    times = np.array([both(pricer, seating, network(6, 1e6)) for seating in seatings])
    order = np.argsort(np.argsort(times, axis=0), axis=0)
    assert np.corrcoef(order.T)[0, 1] > 0.95
    assert np.median(np.abs(times[:, 0] / times[:, 1] - 1)) < 0.15
