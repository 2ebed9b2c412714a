from __future__ import annotations

from itertools import product

import pytest

from ropewalk.errors import InputError, PlanError
from ropewalk.planner.space import Space, check_space, enumerate_space
from ropewalk.strategy import Strategy, check
from ropewalk.workload.source import open_workload


@pytest.mark.parametrize("model", ["gpt2", "mixtral-8x7b", "resnet50"])
def test_the_space_is_every_strategy_that_the_checks_let_through(model: str) -> None:
    workload = open_workload(model, 1, 256 if model != "resnet50" else None)
    space = Space(
        server=4, pipeline=(1, 2, 4), zero=(0, 1), recompute=("none",), interleave=(2, 3), context=(1, 2),
        schedules=("1f1b", "interleaved"),
    )  # fmt: skip
    got = {found.strategy(at) for found in [enumerate_space(space, workload, 8, 8)] for at in range(len(found))}
    wanted = set()
    for tensor, context, pipeline, expert, sequence, micro_batch, zero, (schedule, each) in product(
        (1, 2, 4), (1, 2), (1, 2, 4), (1, 2, 4, 8), (False, True), (1, 2, 4, 8), (0, 1),
        (("1f1b", 1), ("interleaved", 2), ("interleaved", 3)),
    ):  # fmt: skip
        data, left = divmod(8, tensor * context * pipeline)
        if left or data == 0 or 8 % (data * micro_batch):
            continue
        many = 8 // (data * micro_batch)
        plan = Strategy(
            data=data, tensor=tensor, pipeline=pipeline, expert=expert, context=context, sequence_parallel=sequence,
            zero=zero, micro_batch=micro_batch, micro_batches=many, schedule=schedule, interleave=each,
        )  # fmt: skip
        try:
            check(plan, workload.at_batch(micro_batch), 8)
        except InputError:
            continue
        wanted.add(plan)
    assert got == wanted


def test_a_batch_that_no_split_divides_is_refused_with_one_that_works() -> None:
    workload = open_workload("gpt2", 1, 64)
    space = Space(tensor=(1,), pipeline=(1,), context=(1,))
    with pytest.raises(PlanError, match="multiple of 8"):
        check_space(enumerate_space(space, workload, 8, 7), workload, 8, 7)
    assert len(enumerate_space(space, workload, 8, 8))
