"""Strategies with the same degrees everywhere lower to the very bytes they always had: every column is pinned."""

import hashlib

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.task.lower import lower

COLUMNS = ("act", "rank", "peer", "group", "amount", "stream", "priority", "label", "dep_start", "dep", "repeats")

PINNED = {
    "data": (Strategy(data=4, micro_batch=2, order=Order(4000)), "layer", "a060fe30fc34333e"),
    "zero 3": (Strategy(data=4, zero=3, micro_batches=2), "layer", "54d97de4aace5c66"),
    "tensor": (Strategy(data=2, tensor=2, sequence_parallel=True, recompute="selective"), "layer", "97ac7a6d930dd413"),
    "pipeline": (Strategy(data=2, tensor=2, pipeline=4, micro_batches=8), "layer", "116a5f907d900a08"),
    "interleaved": (
        Strategy(data=2, pipeline=3, interleave=2, schedule="interleaved", micro_batches=6, recompute="full"),
        "stage",
        "8f59dd00962a0fab",
    ),
    "context": (Strategy(data=2, context=2, pipeline=2, micro_batches=3, zero=1), "layer", "662a66699fc08e18"),
    "zero 2": (
        Strategy(data=2, pipeline=2, micro_batches=3, zero=2, order=Order(overlap=False)),
        "stage",
        "1e07fb0be15f0ec6",
    ),
    "experts": (Strategy(data=4, expert=2, tensor=2, pipeline=2, micro_batches=4), "layer", "79b72a0569843694"),
    "experts summed up": (
        Strategy(data=4, expert=2, tensor=2, pipeline=2, micro_batches=4),
        "stage",
        "9136fd7e894eea4c",
    ),
}


def digest(step):
    """SHA-256 over all columns, groups and names."""
    sha = hashlib.sha256()
    for name in COLUMNS:
        sha.update(np.ascontiguousarray(getattr(step, name)).tobytes())
    for members in step.groups:
        sha.update(members.tobytes())
    sha.update("\n".join((*step.labels, *step.streams)).encode())
    return sha.hexdigest()[:16]


@pytest.mark.parametrize("name", PINNED)
def test_step_of_a_uniform_strategy_has_the_bytes_it_always_had(name):
    strategy, detail, expected = PINNED[name]
    model = transformer(6, words=24 if strategy.expert == 1 else 0, mixture=4 if strategy.expert > 1 else 0)
    step = lower(model, strategy, Placement(strategy), FlopPrices(), detail)
    assert digest(step) == expected
