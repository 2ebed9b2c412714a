"""Where a search runs changes nothing: workers find out ahead what the search would ask for next."""

import pytest

from ropewalk import engines
from ropewalk.engines import Engine
from ropewalk.hardware import read_cluster
from ropewalk.planner.best_first import best_first
from ropewalk.planner.planned import plan_of
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.plans import dumps

SMALL = Space(server=2, tensor=(1, 2), context=(1,), micro_batch=(1, 2), zero=(0, 1), recompute=("none",))


def test_workers_give_the_same_bytes_as_this_process(monkeypatch):
    asked: list[int] = []

    def beside(task, values, workers):
        asked.append(len(values))
        return [[task(value) for value in values]]

    monkeypatch.setitem(engines.ENGINES, "beside", beside)
    question = PlannerQuestion("gpt2", read_cluster("2x2"), batch=8, sequence=64, space=SMALL)
    alone, helped = answer(question), answer(question, engine=Engine("beside", 4))
    assert dumps(plan_of(helped)) == dumps(plan_of(alone))
    assert helped.counts == alone.counts
    assert max(asked) > 1


def test_candidates_that_may_be_next_are_told_ahead_and_the_search_is_the_same():
    floor = [1.0, 2.0, 3.0, 9.0]
    seconds = [4.0, 2.5, 5.0, 9.5]
    told: list[list[int]] = []

    def found(width):
        import numpy as np

        bounds = np.array(floor)
        return best_first(bounds, lambda which: bounds[which], seconds.__getitem__, 10, ahead=told.append, width=width)

    assert found(1).order == found(3).order == [0, 1]
    assert told == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize("more", [(), ("--network", "own,rail-only")])
def test_an_engine_that_is_not_there_is_refused_before_the_search(ropewalk, more):
    answer = ropewalk("plan", "gpt2", "--cluster", "2x2", "--batch", 8, "--engine", "steam", *more)
    assert answer.code == 2
    assert "there is no engine 'steam': use processes or ray" in answer.stderr
