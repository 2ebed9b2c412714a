"""Adding an extension to a plan's space of strategies never makes the plan slower: same seed, same budget."""

from __future__ import annotations

from itertools import combinations

import pytest

from ropewalk.codesign import study
from ropewalk.codesign.question import EXTENSIONS, PlanQuestion, published_servers

MODELS = {
    "a recommender": "topoopt-dlrm-dedicated:tables=2,rows=1000,width=64,bottom=64x64,top=64x64",
    "two transformer blocks": "gpt2:layers=2",
    "experts": "mixtral-8x7b:layers=1",
}


def asked(model: str, allow: tuple[str, ...], bandwidth: float) -> PlanQuestion:
    cluster = published_servers(4, 2, gpus_per_server=1, bandwidth=bandwidth)
    return PlanQuestion(model, cluster, batch=16, compare=(), budget=60, chains=2, rounds=1, allow=allow)


@pytest.mark.parametrize(
    ("model", "bandwidth"), [("a recommender", 1.25e8), ("two transformer blocks", 12.5e9), ("experts", 1.25e9)]
)
def test_every_extension_keeps_the_best_of_the_spaces_it_contains(model: str, bandwidth: float) -> None:
    seconds = {
        allow: study.answer(asked(MODELS[model], allow, bandwidth)).design.step_time_s
        for count in range(len(EXTENSIONS) + 1)
        for allow in combinations(EXTENSIONS, count)
    }
    for smaller, larger in combinations(seconds, 2):
        if set(smaller) <= set(larger):
            assert seconds[larger] <= seconds[smaller]
