"""The process inside a lab ends without a word when nobody wants its answers any more, or when the lab is gone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ropewalk.lab import worker

WITHOUT_NODES = "from ropewalk.lab import worker; worker.main(['hold', '0', 'root', '-'])"


def started():
    return subprocess.Popen(
        [sys.executable, "-c", WITHOUT_NODES],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_worker_whose_command_was_killed_leaves_no_traceback():
    process = started()
    process.stdout.readline()
    process.stdout.close()
    _, said = process.communicate('{"retransmitted": true}\n')
    assert (process.returncode, said) == (0, "")


def test_a_line_that_stops_a_run_which_is_over_is_not_taken_for_a_request():
    answers, said = started().communicate(worker.STOP + '{"retransmitted": true}\n')
    assert answers.splitlines()[1:] == ['{"retransmitted": 0}']
    assert said == ""


def test_a_worker_whose_lab_is_gone_leaves_no_traceback(monkeypatch):
    def gone(*_):
        raise FileNotFoundError

    monkeypatch.setattr(worker, "serve", gone)
    monkeypatch.setattr(worker, "held", lambda *_: os.path.join(os.devnull, "nothing"))
    worker.serve_while_wanted(1, 1)
    monkeypatch.setattr(worker, "held", lambda *_: os.devnull)
    with pytest.raises(FileNotFoundError):
        worker.serve_while_wanted(1, 1)
