"""Processes that run programs: gone when the work is done, when one of them fails, and when their starter is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import execute_jobs as jobs

from ropewalk.collectives import ring_all_reduce
from ropewalk.errors import ProgramError
from ropewalk.execute import LocalRanks, RunFailed, run_locally

pytestmark = pytest.mark.extras

PATIENCE_S = 300


def _alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_program_runs_alone_and_leaves_nobody_behind():
    report = run_locally(ring_all_reduce([range(2)]), "allreduce", sizes=[1000], dtypes=["int32"], repeats=2, seed=3)
    assert report.agrees
    assert (report.ranks, report.repeats, report.seed, report.rows[0].size_bytes) == (2, 2, 3, 1000)


@pytest.mark.parametrize(
    ("job", "arguments", "error", "text"),
    [
        (jobs.end_at_once, (1,), RunFailed, "rank 1 ended with status 3: no memory left"),
        (jobs.raise_an_error, (), RunFailed, "(?s)rank 1 failed:.*ValueError: rank one has had enough"),
        (jobs.refuse, (), ProgramError, "not like this: do it differently"),
    ],
    ids=["ended", "failed", "refused"],
)
def test_when_one_process_fails_all_are_ended_and_the_reason_is_told(job, arguments, error, text):
    with LocalRanks(2) as processes:
        ids = processes.process_ids
        with pytest.raises(error, match=text):
            processes.call(job, [arguments] * 2)
        assert not any(_alive(process) for process in ids)
        with pytest.raises(RunFailed, match="the processes have ended"):
            processes.call(job, [arguments] * 2)


@pytest.mark.parametrize(
    ("job", "arguments", "text"),
    [
        (jobs.end_at_once, (1,), "rank 1 ended with status 3: no memory left"),
        (jobs.raise_an_error, (), "(?s)rank 1 failed:.*ValueError: rank one has had enough"),
    ],
    ids=["ended", "failed"],
)
def test_the_rank_that_failed_first_is_named_although_others_complain_too(job, arguments, text):
    with LocalRanks(2) as processes:
        processes._tell([(job, arguments)] * 2)
        for process in processes._processes:  # rank 0 loses rank 1, says so and ends, before anybody looks
            process.wait(PATIENCE_S)
        with pytest.raises(RunFailed, match=text):
            processes._answers("run")
        processes._kill()


def test_a_process_that_never_answers_is_named():
    with LocalRanks(2) as processes:
        processes.call(jobs.answer_at_once, [()] * 2)  # imports what the job needs
        processes.timeout_s = 5.0
        with pytest.raises(RunFailed, match="ranks 0 did not answer to wait_for_ever within 5 s: allow more time"):
            processes.call(jobs.wait_for_ever, [()] * 2)


def test_processes_end_with_the_one_that_started_them():
    script = (
        "import time; from ropewalk.execute import LocalRanks\n"
        "with LocalRanks(2) as processes:\n"
        "    print(*processes.process_ids, flush=True)\n"
        "    time.sleep(600)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    ids = [int(word) for word in starter.stdout.readline().split()]
    assert len(ids) == 2
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    deadline = time.monotonic() + PATIENCE_S
    while any(_alive(process) for process in ids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(process) for process in ids)


def test_more_processes_than_a_machine_should_run_are_refused():
    with pytest.raises(ProgramError, match="1000 ranks cannot be run as processes of one machine: give 1 to 64"):
        LocalRanks(1000)
