"""Kernels are compiled ahead by `ropewalk warm`; a command that compiles says so."""

import pytest
from numba import njit

from ropewalk import compiled
from ropewalk.cli import warm
from ropewalk.cli.commands import COMMANDS
from ropewalk.cli.compiling import NOTICE, compiling_is_said


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_warm_asks_every_question_in_a_folder_of_its_own(monkeypatch, ropewalk, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warm, "QUESTIONS", {"list models": ("plan",), "fabric torus:2x2 --json": ("plan",)})
    answer = ropewalk("warm", "--workers", 2)
    assert answer.code == 0
    assert "all kernels are compiled" in answer.stderr
    assert not list(tmp_path.iterdir())


def test_a_question_that_fails_is_named_with_its_message(monkeypatch, ropewalk):
    monkeypatch.setattr(warm, "QUESTIONS", {"fabric torus:2x2 --json": (), "fabric donut:3": ()})
    answer = ropewalk("warm")
    assert answer.code == 1
    assert "`ropewalk fabric donut:3` failed: there is no fabric family" in answer.stderr.splitlines()[-1]


def test_no_question_is_asked_twice_of_the_same_code(monkeypatch, ropewalk):
    asked = []
    monkeypatch.setattr(warm, "_ask", lambda question, *_: asked.append(question))
    monkeypatch.setattr(warm, "QUESTIONS", {"first": ("plan",), "second": ("sync",)})
    for _ in range(2):
        assert ropewalk("warm", "plan").code == 0
    assert asked == ["first"]
    assert ropewalk("warm").code == 0
    assert asked == ["first", "second"]
    monkeypatch.setattr(compiled.KernelTarget, "here", lambda: "another CPU")
    assert ropewalk("warm", "plan").code == 0
    assert asked == ["first", "second", "first"]


def test_every_question_is_asked_of_a_command_that_exists():
    assert {question.split()[0] for question in (*warm.QUESTIONS, *warm.FOR_WHEELS)} <= set(COMMANDS)


def test_only_the_questions_of_a_subject_are_asked(monkeypatch, ropewalk):
    monkeypatch.setattr(warm, "QUESTIONS", {"fabric torus:2x2 --json": ("plan",), "fabric donut:3": ("sync",)})
    answer = ropewalk("warm", "plan")
    assert answer.code == 0, answer.stderr
    assert "kernels for plan are compiled" in answer.stderr
    answer = ropewalk("warm", "ropes")
    assert answer.code == 2
    assert "there are no kernels for 'ropes': use one of plan, simulate, expect" in answer.stderr


@pytest.mark.parametrize(("seconds_per_look", "said"), [(1.5, [NOTICE]), (0.1, [])])
def test_compiling_is_said_once_and_only_where_it_takes_long(seconds_per_look, said):
    clock, heard = iter(range(100)), []

    @njit
    def half(number):
        return number / 2

    @njit
    def quarter(number):
        return half(number) / 2

    with compiling_is_said(heard.append, lambda: next(clock) * seconds_per_look):
        assert quarter(1.0) == 0.25
        assert quarter(1) == 0.25
    assert heard == said
