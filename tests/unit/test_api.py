"""`import ropewalk as rw`: the names that scripts rely on, light until they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ropewalk as rw
from ropewalk.errors import InputError

SMALL = "gpt:layers=2,hidden=128,heads=4,vocabulary=512"


def test_the_public_names_are_these() -> None:
    assert rw.__all__ == ["cluster", "collective", "load", "model", "plan", "simulate"]
    assert set(dir(rw)) == {*rw.__all__, "__version__"}
    with pytest.raises(AttributeError, match="it has cluster, collective, load, model, plan, simulate"):
        _ = rw.magic  # type: ignore[attr-defined]


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import sys, ropewalk as rw; print(*(name for name in ('numpy', 'numba', 'scipy') if name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


def test_the_names_stay_functions_whatever_is_imported() -> None:
    found = rw.simulate(SMALL, "1x2", sequence=64, batch=4)
    rw.collective("allreduce", rw.cluster("1x2"), compare=False)
    assert found.statistics.step_time_s > 0
    assert all(callable(getattr(rw, name)) for name in rw.__all__)


def test_a_plan_is_simulated_as_promised_and_loaded_from_its_file(tmp_path: Path) -> None:
    from ropewalk.plans import write_plan
    from ropewalk.training.planned import plan_of

    answer = rw.simulate(SMALL, rw.cluster("2x2", bandwidth="10Gbps"), sequence=64, batch=8, tensor=2, zero=1)
    write_plan(plan_of(answer), tmp_path / "plan.json")
    plan = rw.load(tmp_path / "plan.json")
    assert plan.strategy.zero == 1
    assert rw.simulate(plan).statistics.step_time_s == plan.prediction.step_time_s
    assert rw.simulate(plan, level="wire").statistics.step_time_s > plan.prediction.step_time_s
    with pytest.raises(InputError, match="the plan fixes tensor"):
        rw.simulate(plan, tensor=2)


def test_what_nobody_can_decide_is_refused_with_names_near_it() -> None:
    with pytest.raises(InputError, match="did you mean tensor"):
        rw.simulate(SMALL, "1x2", tensr=2)


def test_a_model_on_a_network_that_exists_is_planned_too() -> None:
    found = rw.plan(SMALL, "1x2", sequence=64, batch=4, schedules=("1f1b",))
    assert found.made_by == "pipeline"
    assert rw.simulate(found).statistics.step_time_s == found.prediction.step_time_s
