"""The published alternation of strategy and topology as a peer: with the same seed and budget it is never faster."""

import pytest
from published_search import published_search

from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.study import answer


@pytest.mark.parametrize(
    ("model", "servers", "degree"),
    [("dlrm", 8, 4), ("dlrm", 12, 2), ("bert", 8, 4), ("candle", 8, 2), ("ncf", 8, 4), ("vgg16", 8, 2)],
)
def test_a_plan_is_never_slower_than_the_published_search(model: str, servers: int, degree: int) -> None:
    cluster = published_servers(servers, degree)
    asked = PlanQuestion(model, cluster, precision="tf32", budget=100, rounds=2, chains=2, compare=(), seed=3)
    assert answer(asked).design.step_time_s <= published_search(asked).seconds * (1 + 1e-9)
