"""The questions of `ropewalk warm` have answers, each by itself: one that fails would leave users without kernels."""

from pathlib import Path

import pytest

from ropewalk.cli import warm

LONG = ("plan dlrm", "plan gpt2", "plan vgg16", "pipeline gpt2-xl")
"""How questions begin that take CPU seconds."""
ALL = tuple(
    pytest.param(question, marks=[pytest.mark.extras] if question.startswith(LONG) else [])
    for question in (*warm.QUESTIONS, *warm.FOR_WHEELS)
)


@pytest.mark.parametrize("question", ALL)
def test_every_question_is_answered_alone_in_its_folder(question, ropewalk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(warm.JOBS)
    answer = ropewalk(*question.split())
    assert answer.code == 0, answer.stderr
    assert answer.stdout
