"""`ropewalk lab suite`: the testbeds of papers, what was published beside what is predicted and measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.interrupt import STOPPED, say_stopped
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.screen import JSON, PAGE, print_json, print_whole, require_outputs, shown_progress, write_page

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.lab.suite.answer import PaperRun, SuiteAnswer

ONLY = typer.Option(None, "--only", metavar="NAMES", help="Testbeds to run (comma-separated): {testbeds}.")
SHORT = typer.Option(False, "--short", help="Fewer and shorter runs: less than two minutes in total.")
REPEATS = typer.Option(
    None, help="Measured runs; one more run before them warms up the connections.  [default: 3, or 2 with --short]"
)
SEED = typer.Option(0, help="Seed of planners and of hashed routing.")


def suite_command(
    only: str | None = ONLY,
    short: bool = SHORT,
    repeats: int | None = REPEATS,
    seed: int = SEED,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Run the testbeds of papers on real networks: published, predicted and measured.

    Example: `ropewalk lab suite --page lab.html`

    Only some: `ropewalk lab suite --only hips,vclos --short`

    Ctrl-C ends it early and keeps the results so far. `ropewalk list testbeds` describes each entry.
    """
    from ropewalk.lab.suite.question import SuiteQuestion
    from ropewalk.lab.suite.study import answer

    require_outputs(page)
    question = SuiteQuestion(() if only is None else not_empty(split(only), "--only"), short, repeats, seed)
    question.check()
    with shown_progress() as progress:
        found = answer(question, progress)
    if page is not None:
        from ropewalk.report.lab_suite import suite_page

        write_page(page, suite_page(found))
    if json:
        print_json(found.as_json())
    else:
        _print(found)
    if found.stopped:
        say_stopped("partial results are shown")
        raise typer.Exit(STOPPED)
    if found.wrong:
        raise typer.Exit(1)


def _print(found: SuiteAnswer) -> None:
    from ropewalk.lab.suite.summary import summary

    for testbed in found.testbeds:
        if testbed.runs:
            _print_testbed(testbed)
    for sentence in summary(found):
        typer.echo(sentence)


def _print_testbed(one: PaperRun) -> None:
    typer.echo(f"{one.testbed.name}: {one.testbed.about} [{one.testbed.paper}]")
    print_whole(_runs(one))
    if one.compared:
        print_whole(_ratios(one))
    typer.echo("")


def _runs(one: PaperRun) -> Table:
    shown = _table("run", "predicted", "measured", "error", "")
    for run in one.runs:
        remark = "disturbed" if run.disturbed else ""
        shown.add_row(
            run.case.name, f"{run.predicted_s:.3f} s", f"{run.measured_s:.3f} s", f"{100 * run.error:+.1f} %", remark
        )
    return shown


def _ratios(one: PaperRun) -> Table:
    shown = _table("time ratio", "published", "predicted", "measured", "verdict")
    for two in one.compared:
        claim = two.comparison.claim
        shown.add_row(
            f"{two.comparison.slow} / {two.comparison.fast}",
            claim.ratio_said,
            f"{two.predicted:.2f}",
            f"{two.measured:.2f}",
            two.said,
        )
    return shown


def _table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, name in enumerate(names):
        left = number == 0 or number == len(names) - 1
        shown.add_column(name, justify="left" if left else "right", no_wrap=True)
    return shown
