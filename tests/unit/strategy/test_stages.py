"""Where a model is cut."""

import itertools

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.errors import StrategyError
from ropewalk.strategy import KeptPrices, Pieces, Strategy, balanced, cut, shares_of
from ropewalk.workload.dense import Linear
from ropewalk.workload.workload import Layer, Workload


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
    pieces = Pieces((0, 2, 3, 5), 6, (0, 1, 0, 1))
    assert [list(pieces.of(piece)) for piece in range(4)] == [[0, 1], [2], [3, 4], [5]]
    assert pieces.layers_of_stage(0) == [0, 1, 3, 4]
    assert pieces.piece_of_layer().tolist() == [0, 0, 1, 2, 2, 3]


def test_stages_that_are_given_are_taken():
    plan = Strategy(pipeline=2, stages=(0, 1))
    model = transformer()
    assert cut(model, plan, shares_of(model, plan), KeptPrices(FlopPrices())).firsts == (0, 1)


def test_branch_that_skips_a_stage_is_sent_past_it():
    layers = tuple(
        Layer(name, (Linear(1, 2, 2),), size, inputs)
        for name, size, inputs in [("a", 10, ()), ("b", 20, (0,)), ("c", 30, (0, 1)), ("d", 40, (0, 2))]
    )
    pieces = Pieces((0, 1, 2), 4, (0, 1, 2))
    assert pieces.crossings(Workload("branches", layers, 1)) == {(0, 1): 10, (0, 2): 10, (1, 2): 20}
