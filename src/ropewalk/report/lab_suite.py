"""The page of a suite of testbeds: a section for each paper, ratios as published, predicted and measured, all runs."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.lab.suite.answer import Errors, PaperRun, SuiteAnswer
from ropewalk.lab.suite.compared import CaseRun
from ropewalk.lab.suite.summary import summary
from ropewalk.report import quantity
from ropewalk.report.lab_suite_charts import errors_chart, ratios_chart
from ropewalk.report.page import render


@dataclass(frozen=True)
class RunDetails:
    """One run as the page shows it."""

    anchor: str
    run: CaseRun
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One testbed."""

    one: PaperRun
    has_chart: bool
    runs: tuple[RunDetails, ...]
    anchor_of: dict[str, str]
    """Where the details of a run stand on the page, by its name."""


def suite_page(found: SuiteAnswer) -> str:
    """One self-contained HTML page."""
    charts = {one.testbed.name: chart for one in found.testbeds if (chart := ratios_chart(one)) is not None}
    sections = [_section(one, one.testbed.name in charts) for one in found.testbeds if one.runs]
    sentences = [f"{one[0].upper()}{one[1:]}." for one in summary(found)]
    drawn = [errors_chart(found), *charts.values()] if sections else []
    return render(
        "lab_suite.html",
        title="Lab: testbeds of papers",
        charts=drawn,
        headline=_headline(found),
        sentences=sentences,
        facts=_facts(found),
        sections=sections,
        quantity=quantity,
    )


def _section(one: PaperRun, has_chart: bool) -> Section:
    anchors = {run.case.name: f"{one.testbed.name}-{number}" for number, run in enumerate(one.runs)}
    runs = tuple(RunDetails(anchors[run.case.name], run, tuple(run.lab.notes(advice=False))) for run in one.runs)
    return Section(one, has_chart, runs, anchors)


def _headline(found: SuiteAnswer) -> str:
    papers = sum(bool(one.runs) for one in found.testbeds)
    runs = len(list(found.runs))
    return f"{papers} testbed{'s' * (papers != 1)} on real networks: {runs} runs, predicted and measured"


def _facts(found: SuiteAnswer) -> list[tuple[str, str]]:
    quiet, hashed = found.errors(hashed=False), found.errors(hashed=True)
    runs = list(found.runs)
    return [
        ("Quiet patterns, median error", _part(quiet)),
        ("Quiet patterns, worst error", "none" if quiet is None else quantity.percent(quiet.worst)),
        ("Hashed patterns, median error", _part(hashed)),
        ("Runs disturbed by the machine", f"{sum(run.disturbed for run in runs)} of {len(runs)}"),
        ("Took", quantity.seconds(found.seconds)),
    ]


def _part(errors: Errors | None) -> str:
    return "none" if errors is None else quantity.percent(errors.median)
