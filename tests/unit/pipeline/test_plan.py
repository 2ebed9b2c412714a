import pytest

from ropewalk.errors import StrategyError
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.part import Part


def test_a_plan_is_named_after_the_gpus_of_its_stages():
    two = PipelinePlan((Part(0, 3, tuple(range(11))), Part(4, 9, tuple(range(11, 16)))), "1f1b", 8, 4)
    assert two.strategy == "11:5"
    assert str(two) == "0-3@0-10 | 4-9@11-15 1f1b, 4 x 8 samples"
    assert PipelinePlan((Part(0, 3, (0, 1)),), "1f1b", 8, 4).strategy == "DP"
    assert PipelinePlan((Part(0, 3, (0,)), Part(4, 9, (1,))), "1f1b", 8, 4).strategy == "straight"


def test_pieces_of_one_device_are_counted_once():
    stages = (Part(0, 0, (0, 1)), Part(1, 1, (2, 3)), Part(2, 2, (2, 3)), Part(3, 3, (0, 1)))
    plan = PipelinePlan(stages, "zb-v", 8, 4)
    plan.check(states=4, gpus=4)
    assert (plan.devices, plan.gpus, plan.strategy) == (((0, 1), (2, 3)), 4, "2:2")


def test_gpus_that_share_samples_are_one_replica():
    stage = Part(0, 5, (0, 1, 2, 3, 4, 5, 6, 7), tensor=4)
    assert (stage.replicas, stage.sharers) == (2, (0, 4))


@pytest.mark.parametrize(
    ("stages", "fact"),
    [
        ((), "no stages"),
        ((Part(1, 3, (0,)),), "where 0 comes next"),
        ((Part(0, 2, (0,)),), "end with state 2 of 4"),
        ((Part(0, 1, (0, 1)), Part(2, 3, (1, 2))), "let them share all or none"),
        ((Part(0, 3, (9,)),), "not there"),
        ((Part(0, 3, (0, 1, 2), tensor=2),), "whole groups"),
    ],
)
def test_a_plan_that_makes_no_sense_says_why(stages, fact):
    with pytest.raises(StrategyError, match=fact):
        PipelinePlan(stages, "1f1b", 1, 1).check(states=4, gpus=4)


def test_micro_batches_divide_the_global_batch():
    assert list(Terms(24, 2).micro_batch_sizes()) == [2, 4, 6, 8, 12, 24]
    assert list(Terms(24, 2, larger_micro_batches=False).micro_batch_sizes()) == [2]


@pytest.mark.parametrize(
    ("terms", "fact"),
    [
        ({"global_batch": 10, "micro_batch": 4}, "not a multiple of micro-batches"),
        ({"global_batch": 0, "micro_batch": 4}, "give 1 or more"),
        ({"global_batch": 8, "micro_batch": 4, "memory_bytes": 0.0}, "bytes of memory"),
        ({"global_batch": 8, "micro_batch": 4, "schedules": ("2f2b",)}, "no schedule '2f2b'"),
        ({"global_batch": 8, "micro_batch": 4, "schedules": ("dualpip",)}, "did you mean dualpipe"),
        ({"global_batch": 8, "micro_batch": 4, "tensor": (2,)}, "with 1 among them"),
        ({"global_batch": 8, "micro_batch": 4, "recompute": ()}, "allow one of the two"),
        ({"global_batch": 8, "micro_batch": 4, "weight_share": 1.0}, "a fraction such as"),
        ({"global_batch": 8, "micro_batch": 4, "state_multiple": 0.5}, "give 1 or more"),
    ],
)
def test_terms_that_make_no_sense_say_why(terms, fact):
    with pytest.raises(StrategyError, match=fact):
        Terms(**terms)
