"""Runs what may crash, hang or eat memory in a process of its own, many cases one after the other.

A case is a number; what it does follows from the number alone, so that every finding can be run again.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from ropewalk.errors import InputError

SECONDS = 10.0
"""Of a processor that a case may take, once its kernels are compiled."""
BYTES = 3 << 30
"""Of address space that a case may add."""


@dataclass(frozen=True)
class Finding:
    """A case that ended in another manner than with an answer or a refusal."""

    where: str
    case: int
    what: str

    @property
    def kind(self):
        """Findings with the same last line and the same place in the code are one."""
        lines = self.what.strip().splitlines()
        places = [line for line in lines if line.lstrip().startswith("File ")]
        return self.where, lines[-1][:60], *places[-1:]


@dataclass
class Tally:
    """What came of many cases."""

    cases: int = 0
    accepted: int = 0
    refused: int = 0

    def add(self, other):
        self.cases += other.cases
        self.accepted += other.accepted
        self.refused += other.refused


class TooSlow(BaseException):
    """Not an Exception, so that no reader takes it for a mistake in its file."""


def run(where, attempt, first, count, most_s=SECONDS):
    """Cases first, first + 1, …: a tally and the findings. A case that kills its process is a finding too."""
    tally, findings, at = Tally(), [], first
    while at < first + count:
        some, found, done = _in_a_child(where, attempt, at, first + count - at, most_s)
        tally.add(some)
        findings += found
        at = done
    return tally, findings


def _in_a_child(where, attempt, first, count, most_s):
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        child = os.fork()
        if child == 0:
            try:
                _cases(attempt, first, count, log, most_s)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        lines = (
            [json.loads(line) for line in log.read_text().splitlines() if line.endswith("]")] if log.exists() else []
        )
    tally, findings = Tally(), []
    for case, outcome, what in lines:
        tally.cases += 1
        tally.accepted += outcome == "accepted"
        tally.refused += outcome == "refused"
        if outcome == "finding":
            findings.append(Finding(where, case, what))
    done = lines[-1][0] + 1 if lines else first
    if status != 0 and done < first + count:
        findings.append(Finding(where, done, f"the process ended with status {status}"))
        tally.cases += 1
        done += 1
    return tally, findings, done


def _cases(attempt, first, count, log, most_s):
    for one in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(one, _too_slow)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, now + BYTES))
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    with open(log, "w", buffering=1) as written:
        for case in range(first, first + count):
            outcome, what = _outcome(attempt, case, most_s)
            written.write(json.dumps([case, outcome, what]) + "\n")


def _outcome(attempt, case, most_s):
    begun = time.perf_counter()
    signal.setitimer(signal.ITIMER_PROF, most_s)
    signal.setitimer(signal.ITIMER_REAL, max(600.0, 6 * most_s))  # what waits for ever takes no processor
    try:
        attempt(case)
    except InputError as refusal:
        return ("refused", "") if len(str(refusal)) < 100_000 else ("finding", "a message of over 100,000 characters")
    except TooSlow:
        return "finding", f"took more than {most_s:g} s\n{_last_lines()}"
    except BaseException:
        return "finding", traceback.format_exc()[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "accepted", f"{time.perf_counter() - begun:.3f}"


def _last_lines():
    return "".join(traceback.format_tb(sys.exc_info()[2])[-6:])


def _too_slow(number, frame):
    raise TooSlow
