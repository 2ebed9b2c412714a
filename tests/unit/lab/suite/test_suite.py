"""The testbeds as data, what is said about their runs, and that who stops a suite keeps what is done."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from ropewalk.cli import app
from ropewalk.errors import LabError
from ropewalk.lab.parting import Parting
from ropewalk.lab.suite import study
from ropewalk.lab.suite.answer import PaperRun, SuiteAnswer
from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.compared import CaseRun, Compared, RatioVerdict
from ropewalk.lab.suite.question import SuiteQuestion
from ropewalk.lab.suite.summary import summary
from ropewalk.lab.suite.table import TESTBEDS
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio, last_end
from ropewalk.report.lab_suite import suite_page

NAMES = ("ring", "tree", "hash")


def setup(*, hashed=False):
    ready = SimpleNamespace(network=None, tables=lambda: None)
    return SimpleNamespace(hashed=hashed, unit="MB", ready=lambda *_: ready)


def run(name, predicted, measured, *, amount=1.0, hashed=False, trusted=True, short=False):
    seen = SimpleNamespace(end=(measured,))
    lab = SimpleNamespace(
        levels=[SimpleNamespace(end=np.array([predicted]))], counted=(seen,), trusted=(seen,) if trusted else (),
        dropped=0, wrong=(), routing="shortest", spread=0.0, fabric=SimpleNamespace(name="ring:4"),
        free_share=lambda: 0.0, notes=lambda **_: ["median of 1 runs"], as_json=dict,
        parting=Parting("h0->h1", 0.1, 0.2, 0.5, "h0->h1", 0.2, ("queues grew",)),
    )  # fmt: skip
    return CaseRun(Case(name, setup(hashed=hashed), short=short), lab, amount, last_end)


def compared(claim, slow=(4.0, 4.0), fast=(2.0, 2.0), **more):
    return Compared(TimeRatio("ring", "tree", claim), run("ring", *slow, **more), run("tree", *fast))


def suite(*runs, comparisons=(), stopped=False):
    recipe = Recipe(tuple(one.case for one in runs), tuple(comparisons))
    testbed = PaperRun(TESTBEDS["hips"], recipe, runs[: 1 if stopped else None])
    return SuiteAnswer(SuiteQuestion(), (testbed,), 1.0, stopped)


TWICE = Claim("a ring takes twice as long", "closed form", Sure.DERIVED, 2.0)


@pytest.mark.parametrize("name", TESTBEDS)
def test_every_comparison_of_a_testbed_names_runs_of_it(name):
    for recipe in (TESTBEDS[name].make(), TESTBEDS[name].make().shortened()):
        names = [case.name for case in recipe.cases]
        assert len(set(names)) == len(names) > 1
        assert recipe.comparisons
        assert all({one.slow, one.fast} <= set(names) for one in recipe.comparisons)
        assert not recipe.cases[0].rewires


def test_only_what_was_read_or_derived_decides():
    assert [sure for sure in Sure if sure.decides] == [Sure.DERIVED, Sure.READ]
    far = (9.0, 9.0)
    assert compared(TWICE, far).verdict is RatioVerdict.DIFFERS
    assert compared(Claim("", "", Sure.RECALLED, 2.0), far).verdict is RatioVerdict.UNJUDGED
    assert compared(Claim("", "", Sure.ABSTRACT, 2.0), far).said == "not judged: from an abstract only"


def test_times_are_compared_for_the_same_amount_of_work():
    found = compared(TWICE, slow=(4.0, 4.4), amount=2.0)
    assert (found.predicted, found.measured) == (1.0, pytest.approx(1.1))
    assert not found.same_order
    assert found.said == "another order than predicted; differs"


def test_a_draw_keeps_the_order_though_measured_times_are_never_equal():
    assert compared(TWICE, slow=(2.0, 2.01), fast=(2.0, 2.0)).same_order
    assert not compared(TWICE, slow=(2.0, 2.6), fast=(2.0, 2.0)).same_order


def test_the_summary_names_every_miss_and_every_disturbed_run():
    found = suite(
        run("ring", 1.0, 1.01), run("tree", 1.0, 1.2), run("hash", 1.0, 0.93, hashed=True, trusted=False),
        comparisons=[TimeRatio("ring", "tree", TWICE)],
    )  # fmt: skip
    said = summary(found)
    assert said[0].endswith("2 runs are off by 10.5 % (median, target 3 %) and at most 20.0 % (target 8 %)")
    assert "0 of 1 published ratios agree with the measurement" in said
    parting = (
        "they diverge on h0->h1 from 100 ms on: by 500 ms it is 200 ms of sending time behind the prediction; "
        "queues grew"
    )
    assert f"miss: hips: tree +20.0 % ({parting})" in said
    found.testbeds[0].runs[1].lab.spread = 0.25
    assert f"miss: hips: tree +20.0 % (its runs are 25.0 % apart; {parting})" in summary(found)
    assert f"miss: hips: hash -7.0 % (disturbed by the machine; {parting})" in said
    assert any(one.startswith("the machine disturbed all repeats of 1 of 3 runs") for one in said)


def test_the_page_has_a_section_with_bars_and_a_link_to_each_run():
    found = suite(run("ring", 4.0, 4.1), run("tree", 2.0, 2.0), comparisons=[TimeRatio("ring", "tree", TWICE)])
    page = suite_page(found)
    assert 'href="#hips-0"' in page
    assert 'id="hips-0"' in page
    assert '"name":"published"' in page
    assert "ratios-hips" in page
    json.dumps(found.as_json())


def test_one_measured_run_has_no_spread_on_the_page():
    once, several = run("ring", 4.0, 4.1), run("ring", 4.0, 4.1)
    several.lab.counted *= 2
    assert '<td class="number" data-value="0.0"></td>' in suite_page(suite(once))
    assert '<td class="number" data-value="0.0"></td>' not in suite_page(suite(several))


def test_who_stops_a_suite_keeps_what_is_done(monkeypatch):
    recipe = Recipe(tuple(Case(name, setup()) for name in NAMES), ())
    made = []

    def measure(lab, case, *_):
        if case.name == "hash":
            raise KeyboardInterrupt
        made.append(case.name)
        return run(case.name, 1.0, 1.0)

    monkeypatch.setattr(SuiteQuestion, "recipes", lambda _: {"hips": recipe})
    monkeypatch.setattr(study, "built", lambda *_: nullcontext("lab"))
    monkeypatch.setattr(study, "_measured", measure)
    said = []
    found = study.answer(SuiteQuestion(), lambda done, total, now: said.append((done, total, now)))
    assert found.stopped
    assert made == ["ring", "tree"]
    assert [one.case.name for one in found.runs] == made
    assert found.testbeds[0].missing == ["hash"]
    assert said[0] == (0, 3, "hips: ring")
    assert "left" in said[-1][2]
    assert summary(found)[-1] == "1 run was skipped"


def test_a_testbed_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(LabError, match="there is no testbed 'hipss': did you mean hips"):
        SuiteQuestion(only=("hipss",)).check()
    refused = CliRunner().invoke(app, ["lab", "suite", "--only", "hipss", "--repeats", "0"])
    assert "2 findings" in str(refused.exception)
