"""A share of a minute of what `tests/fuzz/run.py` does for hours: the same cases in every run of CI."""

import pytest

from fuzz import guarded
from fuzz.kinds import kinds_of_cases

CASES = {"readers": 30, "commands": 3}
"""Of each kind."""
MOST_S = 1200.0
"""Kernels may have to be compiled first, on a machine that is busy with other things."""


@pytest.mark.parametrize("what", ["readers", "commands"])
def test_whatever_is_given_there_is_an_answer_or_a_refusal(tmp_path, monkeypatch, what):
    kinds = kinds_of_cases(tmp_path, what)
    monkeypatch.chdir(tmp_path)
    for name, attempt in kinds:
        tally, findings = guarded.run(name, attempt, 0, CASES[what], MOST_S)
        assert not findings, f"{name}, case {findings[0].case}: {findings[0].what}"
        assert tally.cases == CASES[what]
