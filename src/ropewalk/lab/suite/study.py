"""Run testbeds one after the other: each run on a lab of its own, or on the one before it with other circuits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.lab.lab import Lab, built
from ropewalk.lab.measure import measured
from ropewalk.lab.process import LabProcess
from ropewalk.lab.suite.answer import PaperRun, SuiteAnswer
from ropewalk.lab.suite.compared import CaseRun
from ropewalk.lab.suite.question import SuiteQuestion
from ropewalk.lab.suite.table import TESTBEDS
from ropewalk.lab.suite.testbed import Case, Ready, Recipe
from ropewalk.progress import Progress, silent
from ropewalk.tenancy.optical.plant import DEFAULT_RECONFIGURATION_S


def answer(question: SuiteQuestion, progress: Progress = silent) -> SuiteAnswer:
    """Run all that is asked for. Who stops it (Ctrl-C) gets what was done until then."""
    question.check()
    recipes = question.recipes()
    found: dict[str, list[CaseRun]] = {name: [] for name in recipes}
    bar = _Bar(progress, sum(len(recipe.cases) for recipe in recipes.values()))
    stopped = False
    try:
        with unwrapped_interrupts():
            for name, recipe in recipes.items():
                for run in _runs(recipe, question, bar, TESTBEDS[name].label):
                    found[name].append(run)
                    bar.done += 1
    except KeyboardInterrupt:
        stopped = True
    testbeds = (PaperRun(TESTBEDS[name], recipe, tuple(found[name])) for name, recipe in recipes.items())
    return SuiteAnswer(question, tuple(testbeds), bar.passed_s, stopped)


@dataclass
class _Bar:
    """How far the suite is, and how long the rest takes if it goes on like this."""

    progress: Progress
    total: int
    done: int = 0

    def __post_init__(self) -> None:
        self._began = time.monotonic()

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self._began

    def say(self, now: str) -> None:
        left = f", about {_rounded(self.passed_s / self.done * (self.total - self.done))} left" if self.done else ""
        self.progress(self.done, self.total, f"{now}{left}")


def _rounded(seconds: float) -> str:
    """A time that nobody knows exactly.

    >>> _rounded(34.0), _rounded(250.0)
    ('35 s', '4 min')
    """
    return f"{5 * max(1, round(seconds / 5))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _runs(recipe: Recipe, question: SuiteQuestion, bar: _Bar, testbed: str) -> Iterator[CaseRun]:
    """All runs of a testbed; labs are kept as long as the next run has other circuits on them."""
    with ExitStack() as labs:
        lab: Lab | None = None
        for case in recipe.cases:
            bar.say(f"{testbed}: {case.name}")
            ready = case.setup.ready(question.seconds, question.seed)
            if case.rewires and lab is not None:
                lab = _rewired(lab, ready)
            else:
                labs.close()
                lab = labs.enter_context(built(ready.network, ready.tables()))
            yield _measured(lab, case, ready, question, bar, testbed)


def _rewired(lab: Lab, ready: Ready) -> Lab:
    """The same nodes with the circuits of another run, dark while mirrors turn."""
    return lab.rewired(lab.network.rewired(ready.network.fabric), ready.tables(), DEFAULT_RECONFIGURATION_S)


def _measured(lab: Lab, case: Case, ready: Ready, question: SuiteQuestion, bar: _Bar, testbed: str) -> CaseRun:
    def say(done: int, total: int | None, now: str) -> None:
        bar.say(f"{testbed}: {case.name}: {now}")

    # Ranks of its own for every run: the connections of the run before it end with theirs.
    with LabProcess.enter(lab.network.fabric.nodes, lab.process.holder) as process:
        own = replace(lab, process=process)
        found = measured(own, ready.routing, ready.work, question.counted, progress=say)
    return CaseRun(case, found, ready.amount, ready.read)
