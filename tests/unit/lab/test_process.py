"""The line to the worker of a lab: every request gets its own answer, also after somebody interrupted a wait."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from ropewalk.lab.process import LabProcess


class Interrupted(io.StringIO):
    """Lines of a worker; the first wait for one is interrupted, and the line comes later."""

    waits = 0

    def readline(self, *_):
        self.waits += 1
        if self.waits == 1:
            raise KeyboardInterrupt
        return super().readline()


def process_of(worker):
    process = LabProcess.__new__(LabProcess)
    process._owed, process._process = 0, SimpleNamespace(stdin=io.StringIO(), stdout=worker)
    return process


def test_after_an_interrupted_wait_the_next_request_gets_its_own_answer():
    worker = Interrupted('{"printed": ["late"]}\n{"printed": ["own"]}\n')
    process = process_of(worker)
    with pytest.raises(KeyboardInterrupt):
        process.ask()
    assert process.ask() == ["own"]


def test_a_run_that_is_interrupted_is_stopped_rather_than_waited_for():
    process = process_of(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        process.run(20.0)
    assert process._process.stdin.getvalue() == '{"run": 20.0}\n\n'
