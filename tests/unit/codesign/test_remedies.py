"""What a memory error advises: only what was seen to fit."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ropewalk.codesign import study
from ropewalk.codesign.job import job_of
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.remedies import with_remedies
from ropewalk.errors import MemoryShortage


def on_two_servers(model: str, batch: int) -> PlanQuestion:
    cluster = published_servers(2, 1, gpus_per_server=1)
    return PlanQuestion(model, cluster, precision="tf32", batch=batch, compare=(), budget=10, rounds=1)


TIGHT = on_two_servers("candle", 480)


def advice(question: PlanQuestion) -> str:
    with pytest.raises(MemoryShortage) as problem:
        study.answer(question)
    return str(problem.value)


def test_what_is_advised_fits() -> None:
    text = advice(TIGHT)
    servers = re.search(r"use (\d+) servers for a batch of (\d+)", text)
    device = re.search(r"or more, such as (\w+)", text)
    assert servers
    assert device
    wide = published_servers(int(servers[1]), 1, gpus_per_server=1)
    assert job_of(replace(TIGHT, cluster=wide, batch=int(servers[2]))).space.starts
    large = published_servers(2, 1, gpus_per_server=1, device=device[1])
    assert job_of(replace(TIGHT, cluster=large)).space.starts


def test_what_does_not_help_is_not_advised() -> None:
    """Weights alone are too much for two servers: no batch is small enough."""
    assert "--batch" not in advice(TIGHT)
    with pytest.raises(MemoryShortage):
        job_of(replace(TIGHT, batch=2)).space  # noqa: B018


def test_activations_alone_are_helped_by_a_smaller_batch() -> None:
    large = on_two_servers("gpt2", 128)
    text = advice(large)
    batch = re.search(r"--batch (\d+)", text)
    assert batch
    assert job_of(replace(large, batch=int(batch[1]))).space.starts
    with pytest.raises(MemoryShortage):
        job_of(replace(large, batch=2 * int(batch[1]))).space  # noqa: B018


def test_where_nothing_helps_the_nearest_is_told() -> None:
    problem = MemoryShortage("a GPU would hold 1e6 GB", 1e15)
    huge = on_two_servers("llama3-70b", 2)
    assert re.search("no tried remedy makes it fit; the closest was to .* GB", str(with_remedies(huge, problem)))
