"""Why every waiting job waits: the head of the queue for what it lacks, everybody else because of the head."""

from __future__ import annotations

from dataclasses import dataclass, field

from ropewalk.tenancy.allocation import Waiting
from ropewalk.tenancy.record import BEHIND_HEAD, Blocked


@dataclass(eq=False)
class Wait:
    """How long a job has waited, for what."""

    reason: str
    since_s: float
    waited_s: dict[str, float] = field(default_factory=dict)

    def turn(self, now_s: float, reason: str) -> None:
        """From now on it waits for something else, or no longer."""
        if now_s > self.since_s:
            self.waited_s[self.reason] = self.waited_s.get(self.reason, 0.0) + (now_s - self.since_s)
        self.reason, self.since_s = reason, now_s


@dataclass(eq=False)
class Waits:
    """The book of all waits, by number of the job; running jobs are in it too, until they are done."""

    of: dict[int, Wait] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)
    """Every try to start a head that failed, in order."""
    head: int | None = None
    """Whom the last of these tries was about."""

    def begin(self, number: int, now_s: float, reason: str) -> None:
        """A job joins the queue, for the first time or again."""
        wait = self.of.setdefault(number, Wait(reason, now_s))
        wait.reason, wait.since_s = reason, now_s  # what lies before was waited for already, or run

    def end(self, number: int, now_s: float) -> None:
        """A job starts."""
        self.of[number].turn(now_s, BEHIND_HEAD)

    def block(self, head: int, name: str, now_s: float, why: Waiting, *, before_waits: bool) -> None:
        """A head was tried in vain; the one that was tried before it, if it still waits, stands behind it now."""
        if self.head is not None and self.head != head and before_waits:
            self.of[self.head].turn(now_s, BEHIND_HEAD)
        self.head = head
        self.of[head].turn(now_s, why.reason.value)
        self.blocked.append(Blocked(name, now_s, why.reason.value))
