"""What the testbeds showed: the error of every prediction, and every ratio as published, predicted and measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from ropewalk.lab.suite.compared import CaseRun, Compared
from ropewalk.lab.suite.question import SuiteQuestion
from ropewalk.lab.suite.table import Testbed
from ropewalk.lab.suite.testbed import Recipe

QUIET_MEDIAN, QUIET_WORST, HASHED_MEDIAN = 0.03, 0.08, 0.05
"""Errors of predictions that are aimed at: of patterns without chance, and of those that a hash decides."""


@dataclass(frozen=True, eq=False)
class PaperRun:
    """What one testbed showed."""

    testbed: Testbed
    recipe: Recipe
    runs: tuple[CaseRun, ...]

    @property
    def compared(self) -> list[Compared]:
        """Every comparison of which both runs are there."""
        by_name = {run.case.name: run for run in self.runs}
        return [
            Compared(one, by_name[one.slow], by_name[one.fast])
            for one in self.recipe.comparisons
            if one.slow in by_name and one.fast in by_name
        ]

    @property
    def missing(self) -> list[str]:
        """Runs that were not made because somebody stopped the suite."""
        done = {run.case.name for run in self.runs}
        return [case.name for case in self.recipe.cases if case.name not in done]

    def as_json(self) -> dict[str, Any]:
        return {
            "testbed": self.testbed.name,
            "paper": self.testbed.paper,
            "notes": list(self.recipe.notes),
            "comparisons": [one.as_json() for one in self.compared],
            "runs": [run.as_json() for run in self.runs],
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Errors:
    """How far predictions were off, over the runs of one kind."""

    runs: int
    median: float
    worst: float

    def as_json(self) -> dict[str, Any]:
        return {"runs": self.runs, "median": self.median, "worst": self.worst}


@dataclass(frozen=True, eq=False)
class SuiteAnswer:
    """All testbeds."""

    question: SuiteQuestion
    testbeds: tuple[PaperRun, ...]
    seconds: float
    """That all of it took."""
    stopped: bool = False
    """By somebody, before it was done."""

    @property
    def runs(self) -> Iterator[CaseRun]:
        return (run for testbed in self.testbeds for run in testbed.runs)

    @property
    def compared(self) -> list[Compared]:
        return [one for testbed in self.testbeds for one in testbed.compared]

    def errors(self, *, hashed: bool) -> Errors | None:
        """Of quiet patterns, or of those that a hash decides; None where there are none."""
        found = [abs(run.error) for run in self.runs if run.case.setup.hashed == hashed]
        return Errors(len(found), float(median(found)), max(found)) if found else None

    @property
    def misses(self) -> list[tuple[str, CaseRun]]:
        """Every run whose prediction was off by more than is aimed at, with its testbed, the largest first."""
        found = [
            (testbed.testbed.name, run)
            for testbed in self.testbeds
            for run in testbed.runs
            if abs(run.error) > (HASHED_MEDIAN if run.case.setup.hashed else QUIET_WORST)
        ]
        return sorted(found, key=lambda entry: -abs(entry[1].error))

    @property
    def wrong(self) -> tuple[str, ...]:
        """What was wrong with data."""
        return tuple(f"{run.case.name}: {one}" for run in self.runs for one in run.lab.wrong)

    def as_json(self) -> dict[str, Any]:
        quiet, hashed = self.errors(hashed=False), self.errors(hashed=True)
        return {
            "short": self.question.short,
            "repeats": self.question.counted,
            "seed": self.question.seed,
            "seconds": self.seconds,
            "stopped": self.stopped,
            "quiet": None if quiet is None else quiet.as_json(),
            "hashed": None if hashed is None else hashed.as_json(),
            "targets": {"quiet_median": QUIET_MEDIAN, "quiet_worst": QUIET_WORST, "hashed_median": HASHED_MEDIAN},
            "misses": [{"testbed": name, "run": run.case.name, "error": run.error} for name, run in self.misses],
            "data_is_right": not self.wrong,
            "testbeds": [testbed.as_json() for testbed in self.testbeds],
        }
