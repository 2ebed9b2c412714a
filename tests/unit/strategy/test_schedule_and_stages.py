"""Orders of passes, and where a model is cut."""

import itertools

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.errors import StrategyError
from ropewalk.strategy import SCHEDULES, Pieces, PriceList, Strategy, balanced, cut, shares_of
from ropewalk.strategy.schedule import gpipe, interleaved, one_forward_one_backward
from ropewalk.workload.dense import Linear
from ropewalk.workload.workload import Layer, Workload


def spelled(order):
    letters = np.where(order.backward, "b", "f")
    return " ".join(f"{letter}{number}" for letter, number in zip(letters, order.micro_batch, strict=True))


def test_one_forward_one_backward_alternates_behind_its_warm_up():
    assert spelled(one_forward_one_backward(0, 3, 4, 1)) == "f0 f1 f2 b0 f3 b1 b2 b3"
    assert spelled(one_forward_one_backward(2, 3, 4, 1)) == "f0 b0 f1 b1 f2 b2 f3 b3"


def test_gpipe_turns_round_once():
    assert spelled(gpipe(0, 3, 3, 1)) == "f0 f1 f2 b2 b1 b0"


def test_interleaved_goes_round_in_groups_as_large_as_the_pipeline():
    order = interleaved(0, 2, 4, 2)
    assert spelled(order) == "f0 f1 f0 f1 f2 b0 f3 b1 f2 b0 f3 b1 b2 b3 b2 b3"
    assert order.piece.tolist() == [0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0]


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (4, 2), (4, 4), (4, 16)])
def test_stages_of_1f1b_hold_ever_fewer_micro_batches(stages, micro_batches):
    held = [one_forward_one_backward(at, stages, micro_batches, 1).most_in_flight for at in range(stages)]
    assert held == [min(stages - at, micro_batches) for at in range(stages)]


@pytest.mark.parametrize(("stages", "pieces", "micro_batches"), [(2, 2, 8), (4, 3, 16), (8, 2, 32)])
def test_first_stage_of_interleaved_holds_what_the_paper_says(stages, pieces, micro_batches):
    """Korthikanti et al. 2022: 1 + (p - 1)/(p m) times the activations of 1F1B, m pieces being m times smaller."""
    held = interleaved(0, stages, micro_batches, pieces).most_in_flight
    assert held / pieces == pytest.approx(stages * (1 + (stages - 1) / (stages * pieces)))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("stages", "pieces"), [(2, 1), (2, 2), (4, 2)])
def test_every_pass_runs_once_and_backward_follows_forward(name, stages, pieces):
    pieces = pieces if name == "interleaved" else 1
    for stage in range(stages):
        order = SCHEDULES[name](stage, stages, 2 * stages, pieces)
        seen = list(zip(order.backward.tolist(), order.micro_batch.tolist(), order.piece.tolist(), strict=True))
        assert sorted(seen) == sorted(itertools.product([False, True], range(2 * stages), range(pieces)))
        assert all(seen.index((False, *at[1:])) < seen.index(at) for at in seen if at[0])


def test_balanced_cut_is_the_best_of_all_cuts():
    generator = np.random.default_rng(5)
    for _ in range(30):
        costs = generator.integers(1, 9, 7)
        for pieces in (1, 2, 3, 7):
            cuts = [(0, *rest) for rest in itertools.combinations(range(1, 7), pieces - 1)]
            sums = [[costs[a:b].sum() for a, b in itertools.pairwise((*cut, 7))] for cut in cuts]
            best = min((max(parts), sum(part**2 for part in parts)) for parts in sums)
            found = [int(costs[a:b].sum()) for a, b in itertools.pairwise((*balanced(costs, pieces), 7))]
            assert (max(found), sum(part**2 for part in found)) == best


def test_more_stages_than_layers_are_refused():
    with pytest.raises(StrategyError, match="2 layers do not fill 3 stages"):
        balanced([1, 1], 3)


def test_pieces_go_round_the_stages():
    pieces = Pieces((0, 2, 3, 5), 6, 2)
    assert [list(pieces.of(piece)) for piece in range(4)] == [[0, 1], [2], [3, 4], [5]]
    assert pieces.layers_of_stage(0) == [0, 1, 3, 4]
    assert pieces.piece_of_layer().tolist() == [0, 0, 1, 2, 2, 3]


def test_stages_that_are_given_are_taken():
    plan = Strategy(pipeline=2, stages=(0, 1))
    model = transformer()
    assert cut(model, plan, shares_of(model, plan), PriceList(FlopPrices())).firsts == (0, 1)


def test_branch_that_skips_a_stage_is_sent_past_it():
    layers = tuple(
        Layer(name, (Linear(1, 2, 2),), size, inputs)
        for name, size, inputs in [("a", 10, ()), ("b", 20, (0,)), ("c", 30, (0, 1)), ("d", 40, (0, 2))]
    )
    pieces = Pieces((0, 1, 2), 4, 3)
    assert pieces.crossings(Workload("branches", layers, 1)) == {(0, 1): 10, (0, 2): 10, (1, 2): 20}
