from __future__ import annotations

import pytest

from ropewalk.hardware import read_cluster
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import Refinement
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer


def test_an_interrupt_while_collectives_are_tried_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Refinement, "refined", interrupted)
    small = Space(tensor=(1,), context=(1,), micro_batch=(1,), zero=(0, 1))
    found = answer(PlannerQuestion("gpt2", read_cluster("1x2"), batch=4, sequence=64, space=small))
    assert found.best.seconds <= found.plain.seconds
    assert "Interrupted" in found.remarks[0]
    assert [one.name for one in found.strands] == ["all together"]
