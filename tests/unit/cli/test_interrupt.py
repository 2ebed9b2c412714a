"""Ctrl-C stops a command wherever it lands."""

import signal
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from ropewalk import files
from ropewalk.cli import app
from ropewalk.cli.screen import progress_bar
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.overlap import answer


@pytest.fixture(autouse=True)
def nothing_written_yet(monkeypatch):
    """As in a new process: files that other tests have written do not count."""
    monkeypatch.setattr(files, "_written", 0)


class Stubborn:
    """Python drops what is raised while an object is taken down."""

    def __del__(self):
        raise KeyboardInterrupt


def lose_an_interrupt_and_go_on():
    with progress_bar():
        lost = Stubborn()
        del lost
        time.sleep(600)


def test_an_interrupt_that_python_drops_comes_again(capsys):
    with pytest.raises(typer.Exit) as leaving:
        lose_an_interrupt_and_go_on()
    assert leaving.value.exit_code == 130
    assert capsys.readouterr().err == "ropewalk: stopped; nothing was written\n"


def test_what_was_there_before_is_there_again():
    before = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    with progress_bar():
        assert sys.unraisablehook is not before[0]
    assert (sys.unraisablehook, signal.getsignal(signal.SIGALRM)) == before


def test_an_interrupt_that_kernels_wrap_twice_is_still_one():
    inner = SystemError("_numba_unpickle returned a result with an exception set")
    inner.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), unwrapped_interrupts():
        raise SystemError("CPUDispatcher returned a result with an exception set") from inner


def test_a_command_that_is_stopped_while_it_plans_streams_has_written_nothing(tmp_path, monkeypatch):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(answer, "plan_stream", stopped)
    plan = tmp_path / "plan.json"
    found = CliRunner().invoke(app, ["overlap", "gpt2:layers=2", "--cluster", "2x2", "--plan", str(plan)])
    assert found.exit_code == 130
    assert "stopped; nothing was written" in found.output
    assert not plan.exists()
