"""Ctrl-C stops a command wherever it lands."""

import signal
import sys
import time

import pytest
import typer

from ropewalk.cli.screen import progress_bar


class Stubborn:
    """Python drops what is raised while an object is taken down."""

    def __del__(self):
        raise KeyboardInterrupt


def lose_an_interrupt_and_go_on():
    with progress_bar():
        lost = Stubborn()
        del lost
        time.sleep(60)


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
