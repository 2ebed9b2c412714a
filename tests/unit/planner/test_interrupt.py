from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ropewalk.hardware import on_network, read_cluster
from ropewalk.planner import study
from ropewalk.planner.best_first import best_first
from ropewalk.planner.on_ports import _OnPorts, planned
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import Refinement
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer

SMALL = Space(tensor=(1,), context=(1,), micro_batch=(1,), zero=(0, 1))
ASKED = PlannerQuestion("gpt2", read_cluster("1x2"), batch=4, sequence=64, space=SMALL)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def interrupted_in_a_kernel(*_: object) -> None:
    """An interrupt as a kernel passes it on."""
    raise SystemError("returned a result with an exception set") from KeyboardInterrupt()


@pytest.mark.parametrize("stop", [interrupted, interrupted_in_a_kernel])
def test_an_interrupt_while_collectives_are_tried_gives_the_best_so_far(
    stop: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refinement, "refined", stop)
    found = answer(ASKED)
    assert found.best.seconds <= found.plain.seconds
    assert "Interrupted" in found.remarks[0]
    assert [one.name for one in found.strands] == ["all together"]


def test_an_interrupt_in_a_kernel_while_strands_are_compared_keeps_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "best_alone", interrupted_in_a_kernel)
    found = answer(ASKED)
    assert "Interrupted" in found.remarks[0]
    assert [one.name for one in found.strands] == ["all together"]


@pytest.mark.parametrize("stop", [interrupted, interrupted_in_a_kernel])
def test_an_interrupt_while_the_last_bound_is_computed_keeps_the_answer(
    stop: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answer(ASKED)
    monkeypatch.setattr(study, "least_anywhere", stop)
    found = answer(ASKED)
    assert found.best.strategy == whole.best.strategy
    assert found.remarks == ("Interrupted: the bound for any choice counts kernels only.",)
    assert 0 < found.bound.seconds <= whole.bound.seconds


def test_an_interrupt_in_a_kernel_behind_the_search_keeps_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refinement, "unrunnable_order", interrupted_in_a_kernel)
    found = answer(ASKED)
    assert "were not tried" in found.remarks[0]
    assert len(found.strands) > 1


def test_an_interrupt_in_a_kernel_between_simulations_gives_the_best_so_far() -> None:
    def simulate(at: int) -> float:
        if at == 1:
            interrupted_in_a_kernel()
        return 9.0

    bounds = np.array([1.0, 2.0])
    found = best_first(bounds, lambda which: bounds[which], simulate, most=9)
    assert (found.complete, found.best) == (False, 0)


def test_an_interrupt_in_a_kernel_while_ports_are_wired_gives_the_best_wiring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_OnPorts, "_starts", interrupted_in_a_kernel)
    cluster = on_network(read_cluster("2x2"), "wire")
    found = planned(PlannerQuestion("gpt2", cluster, batch=4, sequence=64, space=SMALL))
    assert "Interrupted" in found.remarks[0]
