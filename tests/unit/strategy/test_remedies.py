"""What the memory error of a step advises: only what was seen to fit, in the words of the command line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ropewalk.errors import MemoryShortage
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Strategy
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion

LLAMA = TrainingQuestion("llama-7b", read_cluster(given=Given(gpus=8, device="h200")), batch=64)
OPTIONS = {"--tp": "tensor", "--pp": "pipeline", "--dp": "data", "--ep": "expert", "--micro-batch": "micro_batch"}


def advice(question: TrainingQuestion) -> str:
    with pytest.raises(MemoryShortage) as problem:
        prepared(question)
    return str(problem.value)


def followed(question: TrainingQuestion, remedy: str) -> TrainingQuestion:
    """The question with the options of a remedy."""
    words = remedy.split()
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option in OPTIONS:
            question = replace(question, **{OPTIONS[option]: int(value)})
        else:
            change = {"recompute": value} if option == "--recompute" else {"zero": int(value)}
            question = replace(question, usual=replace(question.usual, **change))
    return question


def test_the_fullest_stage_is_named() -> None:
    assert re.search(r"memory: stage 0 needs \d+\.\d GB on gpu h200, which has 141 GB: use --", advice(LLAMA))


def test_every_remedy_that_is_named_fits_when_it_is_followed() -> None:
    remedies = advice(LLAMA).split(": use ")[1].split(", or ")
    assert len(remedies) == 5
    for remedy in remedies:
        assert prepared(followed(LLAMA, remedy)).memory.most <= 141e9


def test_what_is_not_enough_alone_is_tried_together() -> None:
    tight = replace(LLAMA, model="llama-13b", usual=Strategy(recompute="selective"), batch=8)
    text = advice(tight)
    for remedy in text.split(": use ")[1].split(", or "):
        assert prepared(followed(tight, remedy)).memory.most <= 141e9


def test_fewer_data_ranks_have_a_lower_expert_degree_and_it_is_said() -> None:
    spread = replace(LLAMA, model="mixtral-8x7b", batch=64, expert=8, usual=Strategy(recompute="full"))
    remedies = advice(spread).split(": use ")[1].split(", or ")
    assert any("--ep 4" in remedy or "--ep 2" in remedy for remedy in remedies)
    for remedy in remedies:
        assert prepared(followed(spread, remedy)).memory.most <= 141e9


def test_where_nothing_helps_the_nearest_is_told() -> None:
    text = advice(replace(LLAMA, model="gpt3-175b", batch=8))
    assert re.search(r"no tried remedy makes it fit; the closest was --\S.* \(\d+\.\d GB\): use more GPUs", text)
