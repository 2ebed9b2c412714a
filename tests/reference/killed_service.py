"""A service killed again and again while clients work with it: nothing acknowledged may ever be lost."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Event, Thread

from serve_clients import Client
from serve_ledger import Ledger
from serve_process import Gone, ServiceProcess
from serve_rule_check import RuleCheck

from ropewalk.serve.failpoints import PLACES

FABRIC, SERVERS = "leaf-spine:16x16x16", 64
MOST_TIMES = {"mid-batch": 250, "mid-answer": 250, "torn-answer": 250, "checkpoint": 4}
"""A fail point is reached so many times at most before it kills; those of a commit are reached less often."""
MOST_ANSWERS = 240
"""Answers after which a service is killed at any time, wherever it is then."""
LONGEST_S = 120.0
"""How long clients work on a busy machine before a service that comes to no fail point is killed all the same."""
UNREACHED_S = 3.0
"""The same where there is no such place: PostgreSQL copies its log itself."""


@dataclass
class Report:
    """What came of it."""

    acknowledged: int = 0
    lost: int = 0
    """Requests that were not answered."""
    kills: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    working_s: float = 0.0
    """While clients were asking."""

    def __str__(self) -> str:
        places = ", ".join(f"{count} {place}" for place, count in sorted(self.kills.items()))
        return (
            f"{self.acknowledged} operations acknowledged, {self.lost} answers lost, "
            f"{self.kills.total()} kills ({places}), "
            f"{self.acknowledged / max(self.working_s, 1e-9):.0f} operations per second while the service was up: "
            f"{len(self.violations)} violations"
        )


@dataclass
class Harness:
    """Clients, their ledger, and the service between two kills."""

    folder: Path
    database: str
    seed: int = 0
    clients: int = 16
    broken: bool = False
    places: tuple[str, ...] = (*PLACES, "any time", "any time", "any time")
    rules: bool = False
    """Put rules on devices, too."""
    longer: float = 1.0
    """How much longer the service lives between two kills."""

    def __post_init__(self) -> None:
        self.rule_check = RuleCheck(self.database, self.folder / "devices") if self.rules else None
        self.unreached = frozenset({"checkpoint"} if self.database.startswith("postgresql") else ())
        self.places = tuple(place for place in self.places if place not in self.unreached)
        self.chance = random.Random(self.seed)
        self.ledger = Ledger(self.database)
        self.people = [Client(number, self.ledger, self.seed, SERVERS) for number in range(self.clients)]
        self.report = Report()

    def round(self, place: str | None = None) -> None:
        """Start, let clients work, kill, look at what is left."""
        chosen = place or self.chance.choice(self.places)
        times = self.chance.randint(1, int(MOST_TIMES.get(chosen, 60) * self.longer))
        fail_at = "" if chosen == "any time" else f"{chosen}:{times}"
        more = self.rule_check.options if self.rule_check is not None else ()
        service = ServiceProcess(
            self.folder, self.database, fabric=FABRIC, fail_at=fail_at, broken=self.broken, more=more
        )
        try:
            if service.wait_until_ready():
                self._compare_rules(service)
                most = None if fail_at else int(self.chance.randint(1, MOST_ANSWERS) * self.longer)
                self._work(service, (UNREACHED_S if chosen in self.unreached else LONGEST_S) * self.longer, most)
        finally:
            status = service.kill()
        if status == -signal.SIGTERM:
            chosen = "ended from outside"
        elif status != -signal.SIGKILL:
            self.ledger.wrong(f"the service ended by itself with {status}: {service.log.read_text()[-1500:]}")
        self.report.kills[chosen] += 1
        self.ledger.verify()
        if self.rule_check is not None:
            self.ledger.violations += self.rule_check.strays()
        self._count()

    def _compare_rules(self, service: ServiceProcess) -> None:
        """Between two kills, while nobody asks for anything; the service may die of it."""
        if self.rule_check is not None:
            with suppress(Gone):
                self.ledger.violations += self.rule_check.differences(service.socket)

    def _work(self, service: ServiceProcess, for_s: float, most: int | None) -> None:
        """Until the service dies of its fail point, has given the most answers, or was given its time."""
        stop, answered = Event(), self._answered()
        threads = [Thread(target=client.run, args=(service.socket, stop)) for client in self.people]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while service.process.poll() is None and time.monotonic() - began < for_s:
            if not any(thread.is_alive() for thread in threads):
                break  # all of them were told to come back later
            if most is not None and self._answered() - answered >= most:
                break
            with suppress(TimeoutExpired):
                service.process.wait(0.002)
        service.kill()
        for thread in threads:
            thread.join()
        self.report.working_s += time.monotonic() - began

    def _answered(self) -> int:
        return sum(client.acknowledged for client in self.people)

    def _count(self) -> None:
        self.report.acknowledged = self._answered()
        self.report.lost = sum(client.lost for client in self.people)
        self.report.counts = sum((client.counts for client in self.people), Counter())
        self.report.violations = self.ledger.violations

    def finish(self) -> Report:
        """Look at everything once more, from the first job on."""
        self.ledger.verify(everything=True)
        self._count()
        return self.report
