"""Layers that are alike are walked through once: each keeps its own name, and what sets it apart."""

from tiny_models import FlopPrices, transformer

from ropewalk.strategy import LayerChoice, Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.task.step import Act


def compute_labels(strategy):
    step = lower(transformer(), strategy, Placement(strategy), FlopPrices(), "layer")
    mine = (step.act == Act.COMPUTE) & (step.rank == 0)
    return list(dict.fromkeys(step.name_of(at) for at in mine.nonzero()[0]))


def test_alike_layers_are_named_each_by_its_own_name():
    ahead = [f"block {at} forward" for at in range(4)]
    back = [f"block {at} backward" for at in (3, 2, 1, 0)]
    assert compute_labels(Strategy(tensor=2)) == [*ahead, *back, "update"]


def test_of_alike_layers_only_the_one_chosen_is_computed_again():
    plan = Strategy(choices=(LayerChoice("block 2", recompute="full"),))
    assert [label for label in compute_labels(plan) if "recompute" in label] == ["block 2 recompute"]


def test_of_alike_layers_only_the_one_chosen_is_not_split():
    plan = Strategy(tensor=2, choices=(LayerChoice("block 1", tensor=1),))
    step = lower(transformer(), plan, Placement(plan), FlopPrices(), "layer")
    met = {step.name_of(at).rsplit(" ", 2)[0] for at in (step.act == Act.ALL_REDUCE).nonzero()[0]}
    assert {" ".join(name.split()[:2]) for name in met} == {"block 0", "block 2", "block 3"}
