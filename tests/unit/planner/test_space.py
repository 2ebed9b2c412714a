from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ropewalk.errors import InputError, PlanError
from ropewalk.planner.enumerated import check_space, enumerate_space
from ropewalk.planner.space import Space
from ropewalk.strategy import Strategy, check
from ropewalk.workload.source import open_workload


@pytest.mark.parametrize("model", ["gpt2", "mixtral-8x7b:layers=6", "llama-3.2-1b:layers=6", "resnet50"])
def test_the_space_is_every_strategy_that_the_checks_let_through(model: str) -> None:
    workload = open_workload(model, 1, 256 if model != "resnet50" else None)
    space = Space(
        server=4, pipeline=(1, 2, 4), zero=(0, 1), recompute=("none",), interleave=(2,), context=(1, 2),
        micro_batch=(1, 2), schedules=("1f1b", "interleaved"), exchange=("gather", "ring", "ulysses"),
    )  # fmt: skip
    got = {found.strategy(at) for found in [enumerate_space(space, workload, 8, 8)] for at in range(len(found))}
    wanted = set()
    for tensor, context, pipeline, expert, sequence, micro_batch, zero, (schedule, each), exchange, folded in product(
        (1, 2, 4), (1, 2), (1, 2, 4), (1, 2, 4, 8), (False, True), (1, 2), (0, 1),
        (("1f1b", 1), ("interleaved", 2)), ("gather", "ring", "ulysses"), (False, True),
    ):  # fmt: skip
        idle = (context == 1 and exchange != "gather") or (folded and (expert == 1 or tensor * context == 1))
        if idle:
            continue
        data, left = divmod(8, tensor * context * pipeline)
        if left or data == 0 or 8 % (data * micro_batch):
            continue
        many = 8 // (data * micro_batch)
        plan = Strategy(
            data=data, tensor=tensor, pipeline=pipeline, expert=expert, context=context, sequence_parallel=sequence,
            zero=zero, micro_batch=micro_batch, micro_batches=many, schedule=schedule, interleave=each,
            context_exchange=exchange, fold_experts=folded,
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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tensor": (3,)}, r"8 GPUs with a batch of 64 has --tp 3: give --tp 1,2,4$"),
        ({"tensor": (2,), "pipeline": (8,)}, r"--tp 2, --pp 8: give --tp 1 or --pp 1,2,4$"),
        ({"expert": (2,)}, r"--ep 2: give --ep 1$"),
        ({"context": (3,)}, r"--cp 3: give --cp 1$"),
        ({"tensor": (3,), "context": (3,)}, r"--tp 3, --cp 3: leave them out$"),
        ({"micro_batch": (3,)}, r"divides a batch of 64: give a batch that is a multiple of 24$"),
        ({"tensor": (8,)}, r"--tp 8: give --tp 1,2,4$"),  # 12 heads
    ],
)
def test_a_choice_that_leaves_nothing_is_refused_with_one_that_works(given: dict[str, Any], words: str) -> None:
    workload, space = open_workload("gpt2", 1, 64), Space(**given)
    with pytest.raises(PlanError, match=words):
        check_space(enumerate_space(space, workload, 8, 64), workload, 8, 64)


def exchanges(sequence: int, *given: str) -> set[str]:
    workload = open_workload("llama-3.2-1b", 1, sequence)
    found = enumerate_space(Space(server=2, context=(1, 2), exchange=given), workload, 4, 4)
    assert {found.strategy(at).context_exchange for at in np.flatnonzero(found.column("context") == 1)} == {"gather"}
    return {found.strategy(at).context_exchange for at in np.flatnonzero(found.column("context") == 2)}


def test_how_context_ranks_meet_is_searched_for_long_sequences_and_where_it_is_asked_for() -> None:
    assert exchanges(8192) == {"gather"}
    assert exchanges(16384) == {"gather", "ring", "ulysses"}
    assert exchanges(8192, "ring") == {"ring"}


def test_experts_are_folded_where_that_changes_something() -> None:
    workload = open_workload("mixtral-8x7b:layers=2", 1, 256)
    asked = Space(server=4, context=(1,), pipeline=(1,), fold=(True,), zero=(0,), recompute=("none",))
    found = enumerate_space(asked, workload, 8, 8)
    kinds = {(one.expert, one.tensor, one.fold_experts) for one in map(found.strategy, range(len(found)))}
    assert {folded for expert, tensor, folded in kinds if expert > 1 and tensor > 1} == {True}
    assert {folded for expert, tensor, folded in kinds if expert == 1 or tensor == 1} == {False}
    assert (8, 4, True) in kinds, "more ranks than there are data ranks"
