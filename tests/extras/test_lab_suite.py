"""The short form of the testbeds on the kernel of this machine: every run ends, its data is right, nothing is left."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from ropewalk.lab.needs import missing
from ropewalk.lab.process import WORKER
from ropewalk.lab.suite.question import SuiteQuestion
from ropewalk.lab.suite.study import answer

pytestmark = pytest.mark.extras


def workers() -> int:
    """Processes of labs that this one has started: others may run labs of their own meanwhile."""
    found = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            found += parent == os.getpid() and WORKER.encode() in (entry / "cmdline").read_bytes().split(b"\0")
    return found


def test_the_short_suite_runs_all_testbeds_and_leaves_nothing():
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    found = answer(SuiteQuestion(short=True, repeats=1))
    assert not found.stopped
    assert not found.wrong
    assert all(one.runs and not one.missing for one in found.testbeds)
    assert all(run.measured_s > 0 for run in found.runs)
    # Pinned paths keep jobs apart however busy the machine is: the bytes of every link are the predicted ones.
    for run in found.runs:
        assert (run.lab.sent_bytes >= 0.99 * run.lab.predicted_bytes).all()
    assert workers() == 0
