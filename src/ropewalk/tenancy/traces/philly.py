"""The log of Microsoft's Philly cluster as published: `cluster_job_log`, a JSON array of jobs with their attempts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ropewalk.documents.json_array import read_json_array
from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.sheet import MOST_BYTES, NOTHING, Mistakes, moment
from ropewalk.tenancy.traces.trace import Skip

KEYS = frozenset({"status", "vc", "jobid", "attempts", "submitted_time", "user"})
STATES = frozenset({"Pass", "Killed", "Failed"})


def philly(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of Philly (Jeon et al., ATC'19) with the GPUs of their first attempt and the run time of all attempts.

    The time between two attempts is time in the queue of that cluster and not counted. An attempt without an end was
    still running when the log was cut.
    """
    mistakes = Mistakes(path)
    for line, entry in read_json_array(path, f"trace {path}", ClusterError, MOST_BYTES):
        job = _Entry(line, entry, mistakes)
        if job.is_whole():
            yield from job.read(skip)
    mistakes.raise_if_any()


class _Entry:
    """One object of the log; what is wrong with it is collected under its line."""

    def __init__(self, line: int, entry: dict[str, Any], mistakes: Mistakes) -> None:
        self.line, self.entry, self.mistakes = line, entry, mistakes

    def is_whole(self) -> bool:
        wrong = [f"the key {key!r} is unknown: remove it" for key in self.entry if key not in KEYS]
        wrong += [f"the key {key!r} is missing: add it" for key in sorted(KEYS) if key not in self.entry]
        if not wrong and str(self.entry["status"]) not in STATES:
            wrong.append(f"the status {self.entry['status']!r} is unknown: use one of {', '.join(sorted(STATES))}")
        if not wrong and not isinstance(self.entry["attempts"], list):
            wrong.append("attempts is not a list: write one")
        for message in wrong:
            self.mistakes.add(self.line, message)
        return not wrong

    def read(self, skip: Skip) -> Iterator[TraceJob]:
        submitted = self._moment("submitted_time", self.entry["submitted_time"])
        attempts = self.entry["attempts"]
        try:
            spans = [
                (self._moment("start_time", a["start_time"]), self._moment("end_time", a["end_time"])) for a in attempts
            ]
            gpus = sum(len(server["gpus"]) for server in attempts[0]["detail"]) if attempts else 0
        except (KeyError, TypeError):
            needs = "start_time, end_time and detail, a list of servers with their gpus"
            self.mistakes.add(self.line, f"an attempt is not what it should be: give it {needs}")
            return
        ran = [(start, end) for start, end in spans if start is not None and end is not None]
        if any(end < start for start, end in ran):
            self.mistakes.add(self.line, "an attempt ends before it starts, a negative time: fix it")
            return
        duration = sum(end - start for start, end in ran)
        if submitted is None:
            skip("has no submission time")
        elif gpus == 0:
            skip("requested no GPU")
        elif len(ran) < len(spans):
            skip("was still running")
        elif duration == 0:
            skip("never ran")
        else:
            name, user, state = (str(self.entry[key]) for key in ("jobid", "user", "status"))
            yield TraceJob(name, gpus, submitted, duration, user=user, state=state)

    def _moment(self, key: str, text: object) -> float | None:
        if text is None or (isinstance(text, str) and text in NOTHING):
            return None
        try:
            return moment(str(text))
        except ValueError:
            self.mistakes.add(self.line, f"{key} is {text!r}: give a date with time like 2017-10-03 12:00:00")
            return None
