"""What a suite says in sentences: errors against what is aimed at, verdicts, and every larger miss by name."""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.lab.suite.answer import HASHED_MEDIAN, QUIET_MEDIAN, QUIET_WORST, Errors, SuiteAnswer
from ropewalk.lab.suite.compared import RatioVerdict


def summary(found: SuiteAnswer) -> list[str]:
    """All sentences, the general ones first."""
    errors = (_errors_said(kind, found.errors(hashed=kind == "hashed")) for kind in ("quiet", "hashed"))
    missed = (f"miss: {name}: {run.case.name} {100 * run.error:+.1f} %{run.excuse}" for name, run in found.misses)
    return [*(one for one in errors if one), *_verdicts(found), *missed, *_cautions(found)]


def _verdicts(found: SuiteAnswer) -> Iterator[str]:
    judged = [one for one in found.compared if one.comparison.claim.decides]
    agreeing = sum(one.verdict is RatioVerdict.AGREES for one in judged)
    others = len(found.compared) - len(judged)
    if judged:
        yield f"{agreeing} of {len(judged)} published ratios agree with the measurement" + (
            f"; {others} more are shown but not judged" if others else ""
        )
    for one in judged:
        if one.verdict is RatioVerdict.DIFFERS:
            names = f"{one.comparison.slow} / {one.comparison.fast}"
            yield f"{names} is {one.measured:.2f}, published {one.comparison.claim.ratio_said}"


def _cautions(found: SuiteAnswer) -> Iterator[str]:
    """What keeps the numbers from being trusted."""
    runs = list(found.runs)
    disturbed = sum(run.disturbed for run in runs)
    if disturbed:
        yield (
            f"the machine disturbed all repeats of {disturbed} of {len(runs)} runs: repeat the suite on a quiet "
            "machine before trusting them"
        )
    yield from (f"the data was wrong: {one}" for one in found.wrong)
    missing = sum(len(one.missing) for one in found.testbeds)
    if missing:
        yield f"{missing} runs were skipped" if missing > 1 else "1 run was skipped"


def _errors_said(kind: str, found: Errors | None) -> str:
    """Of one kind of patterns.

    >>> _errors_said("quiet", Errors(12, 0.011, 0.09))
    'quiet patterns: predictions of 12 runs are off by 1.1 % (median, target 3 %) and at most 9.0 % (target 8 %)'
    """
    if found is None:
        return ""
    middle, worst = (f"{100 * value:.1f} %" for value in (found.median, found.worst))
    targets = (QUIET_MEDIAN, QUIET_WORST) if kind == "quiet" else (HASHED_MEDIAN, None)
    aim, most = (None if value is None else f"target {100 * value:.0f} %" for value in targets)
    runs = f"{found.runs} run{'s' * (found.runs != 1)}"
    said = f"{kind} patterns: predictions of {runs} are off by {middle} (median, {aim}) and at most {worst}"
    return said if most is None else f"{said} ({most})"
