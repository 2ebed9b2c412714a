"""Trainings in a planned order end with the gradients and weights of DistributedDataParallel."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import overlap_jobs as jobs
import torch

from ropewalk.errors import StrategyError
from ropewalk.execute import LocalRanks
from ropewalk.execute.overlap import CommunicationOrder, OperationLaunch, Piece, fused, schedule

pytestmark = pytest.mark.extras

RANKS = 3


@pytest.fixture(scope="module")
def processes():
    with LocalRanks(RANKS, timeout_s=600) as started:
        yield started


@pytest.fixture(scope="module")
def two_processes():
    with LocalRanks(2, timeout_s=600) as started:
        yield started


def shuffled(model, seed, **settings):
    """Any order: tensors cut anywhere, pieces in any order, some fused, some streamed."""
    numbers = random.Random(seed)
    pieces = []
    for name, elements in jobs.elements(model).items():
        cuts = sorted({0, elements, *(numbers.randrange(elements) for _ in range(2))})
        pieces += [Piece(name, start, stop) for start, stop in pairwise(cuts)]
    numbers.shuffle(pieces)
    operations = []
    while pieces:
        count = numbers.randint(1, 3)
        operations.append(tuple(pieces[:count]))
        pieces = pieces[count:]
    return CommunicationOrder(tuple(OperationLaunch((*pair,)) for pair in _pairs(operations)), **settings)


def _pairs(values):
    return [values[at : at + 2] for at in range(0, len(values), 2)]


def whole(model, names=None):
    elements = jobs.elements(model)
    return CommunicationOrder(tuple(fused(Piece(name, 0, elements[name])) for name in names or elements))


@pytest.mark.parametrize("optimizer", jobs.OPTIMIZERS)
@pytest.mark.parametrize("model", jobs.MODELS)
def test_two_ranks_end_with_the_very_bits_of_ddp(two_processes, model, optimizer):
    order = shuffled(model, seed=1, credit_bytes=200)
    expected = two_processes.call(jobs.trained_by_ddp, [(model, optimizer)] * 2)
    assert two_processes.call(jobs.trained_by_order, [(model, optimizer, order)] * 2) == expected


@pytest.mark.parametrize("settings", [{}, {"credit_bytes": float("inf")}, {"barrier": True}], ids=str)
def test_three_ranks_end_with_the_numbers_of_ddp(processes, settings):
    expected = processes.call(jobs.trained_by_ddp, [("uneven", "sgd")] * RANKS)
    found = processes.call(jobs.trained_by_order, [("uneven", "sgd", shuffled("uneven", 2, **settings))] * RANKS)
    assert found[0] == found[1] == found[2]
    for ours, theirs in zip(found[0], expected[0], strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert ours[name] == pytest.approx(theirs[name], abs=1e-6)


def test_gradients_of_several_passes_and_rates_that_change_are_as_in_ddp(two_processes):
    """Three passes a step, and a learning rate that is halved while the update is still to come."""
    expected = two_processes.call(jobs.trained_by_ddp, [("attention", "sgd", True, 3)] * 2)
    order = shuffled("attention", seed=3)
    assert two_processes.call(jobs.trained_by_order, [("attention", "sgd", order, True, 3)] * 2) == expected


def test_a_parameter_without_gradient_is_named_instead_of_waited_for(two_processes):
    told = two_processes.call(jobs.one_part_unused, [(whole("tied"),)] * 2)
    assert all("twice.bias and twice.weight had no gradient in the last backward pass" in text for text in told)


def test_two_backward_passes_in_a_step_are_refused(two_processes):
    told = two_processes.call(jobs.two_gradients, [(whole("tied", sorted(jobs.elements("tied"))),)] * 2)
    assert all("has a second gradient while the first is in flight" in text for text in told)


def test_a_network_that_fails_is_told_to_those_who_wait(two_processes):
    assert two_processes.call(jobs.broken_network, [(whole("tied"),)] * 2) == [["the cable is cut"] * 2] * 2


def test_evaluation_right_behind_a_step_sees_new_weights(two_processes):
    assert two_processes.call(jobs.weights_in_evaluation, [(shuffled("uneven", 4),)] * 2) == [True, True]


def test_an_order_for_another_module_is_refused_before_anything_is_sent():
    with pytest.raises(
        StrategyError, match=r"(?s)extra are in the order but not in the module.*bias has 1 elements, but"
    ):
        schedule(
            torch.nn.Linear(2, 1),
            jobs.OPTIMIZERS["sgd"],
            CommunicationOrder((fused(Piece("weight", 0, 2), Piece("bias", 0, 3), Piece("extra", 0, 1)),)),
        )


def test_parameters_of_two_types_are_refused():
    mixed = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1).double())
    with pytest.raises(StrategyError, match="its parameters are of 2 types or devices"):
        schedule(mixed, jobs.OPTIMIZERS["sgd"], CommunicationOrder((fused(Piece("0.weight", 0, 2)),)))
