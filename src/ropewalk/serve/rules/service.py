"""The reconciler as a part of a service: a thread that every commit wakes, and a clock.

After a commit only devices that are behind are looked at; once in a period all of them are, whether anybody says that
something has changed or not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

from ropewalk.serve.rules.reconciler import Reconciler
from ropewalk.serve.rules.report import ReconcileReport
from ropewalk.serve.rules.source import ControllerSource

Say = Callable[..., None]
"""(event, level, facts by name): a line of the log."""
LEAST_PERIOD_S = 0.05
LEAST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.5
"""Between passes: as long as the last one took, so that commits without end leave time for others."""
AGAIN_S = 1.0
"""After a pass that could not even begin."""


class RuleService:
    """Rules of a controller's jobs on the devices of some drivers."""

    def __init__(
        self, source: ControllerSource, reconciler: Reconciler, *, period_s: float = 5.0, say: Say | None = None
    ) -> None:
        self.period_s = max(period_s, LEAST_PERIOD_S)
        self._source, self._reconciler = source, reconciler
        self._say = say or (lambda *_, **__: None)
        self._one_at_a_time = Lock()
        self._wake, self._ending = Event(), Event()
        self._thread = Thread(target=self._run, name="ropewalk-rules", daemon=True)
        self._counted: Counter[str] = Counter()
        self._last = ReconcileReport()
        self._told_ready: set[tuple[str, int]] = set()
        self._failing: dict[str, str] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the pass under way; rules stay where they are."""
        self._ending.set()
        self._wake.set()
        self._thread.join()

    def hint(self) -> None:
        """Something was committed."""
        self._wake.set()

    def reconcile(self) -> dict[str, Any]:
        """A whole pass now, whatever failed before."""
        return self.once(whole=True, patient=False).as_document()

    def rules_of_job(self, job: str) -> dict[str, Any]:
        """The rules of a job, each with whether its device had it when it was last looked at."""
        document, rules = self._source.rules_of_job(job)
        listed = [rule.as_document() | {"present": self._reconciler.has(rule)} for rule in rules]
        place = "none" if not rules else "in place" if all(one["present"] for one in listed) else "pending"
        return document | {"driver": "+".join(self._reconciler.drivers), "rules_are": place, "rules": listed}

    def metrics(self) -> dict[str, float]:
        """Counts since the start, and what the last pass saw."""
        book = self._reconciler.book
        return {
            **{f"{name}_total": float(self._counted[name]) for name in ("added", "removed", "repaired")},
            "passes_total": float(self._counted["passes"]),
            "failures_total": float(self._counted["failures"]),
            "wanted": float(len(book)),
            "jobs_not_ready": float(len(book.running) - len(self._last.ready)),
            "allocations_releasing": float(len(book.releasing)),
            "devices_failing": float(len(self._failing)),
            "dead_links": float(len(self._last.dead)),
            "last_pass_seconds": self._last.seconds,
            "thread_alive": float(self._thread.is_alive()),
        }

    def _run(self) -> None:
        due = 0.0
        while not self._ending.is_set():
            whole = time.monotonic() >= due
            if whole:
                due = time.monotonic() + self.period_s
            try:
                self.once(whole=whole)
            except Exception as problem:  # whatever it is, rules of running jobs must be looked after
                self._counted["failures"] += 1
                self._say("rules-failed", "error", message=f"{type(problem).__name__}: {problem}")
                self._ending.wait(AGAIN_S)
            self._ending.wait(min(max(LEAST_PAUSE_S, self._last.seconds), LONGEST_PAUSE_S))
            self._wake.wait(max(0.0, min(due - time.monotonic(), self._reconciler.retry_in())))
            self._wake.clear()

    def once(self, *, whole: bool, patient: bool = True) -> ReconcileReport:
        """One pass, over all devices or those that are behind; the controller hears what came of it."""
        with self._one_at_a_time:
            report = self._reconciler.once(self._source.wanted(), whole=whole, patient=patient)
            self._last = report
            self._count(report)
            self._tell(report)
            return report

    def _count(self, report: ReconcileReport) -> None:
        self._counted["passes"] += 1
        self._counted["failures"] += len(report.failed)
        for name in ("added", "removed", "repaired"):
            self._counted[name] += len(getattr(report, name))
        if not report.quiet:
            self._say(
                "rules", "info", added=len(report.added), removed=len(report.removed), repaired=len(report.repaired),
                failed=len(report.failed), seconds=round(report.seconds, 4),
            )  # fmt: skip

    def _tell(self, report: ReconcileReport) -> None:
        """The controller hears what has become true; jobs that waited for links start then."""
        for job, generation in report.gone:
            self._source.gone(job, generation)
        for job, generation in sorted(report.ready - self._told_ready):
            self._source.ready(job, generation)
        for rule in (*report.added, *report.repaired):
            if (rule.job, rule.generation) in self._told_ready:
                self._source.note("rule-repaired", rule.device, f"{rule.key} of {rule.job} was missing or wrong")
        self._told_ready = (self._told_ready | report.ready) & self._reconciler.book.running.keys()
        dead = set(report.dead)
        if dead:
            self._source.dead(sorted(dead - self._source.failed_links()))
        self._tell_failures(report)

    def _tell_failures(self, report: ReconcileReport) -> None:
        for device, message in report.failed.items():
            if device not in self._failing:
                self._say("device-failed", "warning", device=device, message=message)
                self._source.note("device-failed", device, message)
        still = {device: self._failing[device] for device in report.resting if device in self._failing}
        for device in self._failing.keys() - report.failed.keys() - still.keys():
            self._source.note("device-answers", device, "it answers again")
        self._failing = {**still, **report.failed}
