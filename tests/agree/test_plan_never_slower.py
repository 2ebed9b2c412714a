"""The best of everything against the best of each strand: `plan` is never slower than `overlap` and `collective` alone.

Pipelines stand in `tests/unit/planner/test_pipelines.py`; the larger cases in `benchmarks/against_strands.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer as ordered
from ropewalk.planner.answer import Option
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import Refinement
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.strategy.frameworks import runnable
from ropewalk.training import NetworkUse, TrainingQuestion
from ropewalk.training import answer as simulated

MODEL, TOKENS = "gpt:layers=3,hidden=256,heads=4", 64
SLOW = read_cluster("2x2", Given(device="a100", nics=1, nic_bandwidth=1.25e9))
DATA_ALONE = Space(tensor=(1,), pipeline=(1,), context=(1,), zero=(0, 1), recompute=("none",))
EQUAL = 1 + 1e-9


def test_never_slower_than_an_order_of_gradients_that_may_be_run() -> None:
    asked = OverlapQuestion(MODEL, SLOW, batch=8, sequence=TOKENS)
    ways = [way for way in ordered(asked).methods if way.simulated_s is not None]
    question = PlannerQuestion(MODEL, SLOW, 8, TOKENS, space=DATA_ALONE)
    usual, free = answer(question).best, answer(replace(question, allow=("unrunnable",))).best
    strategies = {way.name: replace(asked.training.strategy(), order=way.order) for way in ways}
    run = {name for name, strategy in strategies.items() if None in runnable(strategy).values()}
    assert {"buckets", "fifo", "merged"} <= run < strategies.keys()
    assert usual.seconds <= min(way.time_s for way in ways if way.name in run) * EQUAL
    assert free.seconds <= min(way.time_s for way in ways) * EQUAL


@pytest.mark.parametrize("network", ["torus:4", "leaf-spine:2x1x2", "fat-tree"])
def test_never_slower_than_the_best_collectives_of_plain_data_parallelism(network: str) -> None:
    cluster = read_cluster("4x1", Given(device="a100", network=network, nic_bandwidth=1.25e9))
    asked = TrainingQuestion(
        MODEL, cluster, batch=8, sequence=TOKENS, data=4, micro_batch=2, network=NetworkUse(algorithm="auto")
    )
    theirs = simulated(asked).statistics.step_time_s
    ours = answer(PlannerQuestion(MODEL, cluster, 8, TOKENS, space=DATA_ALONE)).best
    assert ours.seconds <= theirs * EQUAL


def test_never_slower_for_being_allowed_what_no_framework_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """More choices lead a search elsewhere: here, where it finds nothing."""
    refined = Refinement.refined

    def unlucky(self: Refinement, start: Option, *say: Callable[[str], None]) -> Option:
        return start if self.unrunnable else refined(self, start, *say)

    monkeypatch.setattr(Refinement, "refined", unlucky)
    question = PlannerQuestion(MODEL, SLOW, 8, TOKENS, space=DATA_ALONE)
    usual, free = (answer(replace(question, allow=allow)).best for allow in ((), ("unrunnable",)))
    assert free.seconds <= usual.seconds
