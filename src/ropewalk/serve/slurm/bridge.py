"""Keeps the controller and Slurm in agreement: looks at both every few seconds, and at once when somebody hints.

Only here are jobs of Slurm ended, adopted, started and held; rounds never overlap. When Slurm does not answer, nothing
is changed: silence is no news about any job.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ropewalk.errors import RopewalkError
from ropewalk.serve.slurm.act import Actor
from ropewalk.serve.slurm.commands import SlurmCommands
from ropewalk.serve.slurm.decide import decide, missing
from ropewalk.serve.slurm.seen import Patience, Seen
from ropewalk.serve.slurm.servers import KINDS, drained_for_slurm, sync_servers
from ropewalk.serve.slurm.steps import WORDS, Attach, Finish, Step, told
from ropewalk.serve.slurm.view import view_of
from ropewalk.serve.writer import Writer

SHORTEST_S = 0.05
"""Between two rounds, however many hints come."""
SOON_S = 0.3
"""While Slurm cleans up behind a job, whose servers others may wait for."""
REST = 5
"""After a round the bridge rests so many times as long as it took to look at both sides, but no longer than a poll."""
READ_S = 30.0
Tell = Callable[..., None]
"""(event, level=…, facts by name): a line of the log."""


@dataclass(frozen=True)
class SlurmSettings:
    """How the bridge works."""

    partitions: tuple[str, ...] = ()
    """Partitions whose jobs the controller places; all where empty."""
    poll_s: float = 2.0
    patience: Patience = field(default_factory=Patience)
    commands: SlurmCommands = field(default_factory=SlurmCommands)


def _silent(event: str, level: str = "info", **facts: Any) -> None:
    """Nobody listens."""


class Bridge:
    """One thread between a writer and a Slurm cluster."""

    def __init__(self, writer: Writer, settings: SlurmSettings, tell: Tell = _silent) -> None:
        self.writer, self.settings, self._tell = writer, settings, tell
        self.taken: Counter[str] = Counter()
        """Steps that were taken, by kind."""
        self.failed: Counter[str] = Counter()
        self.rounds = 0
        self.problem: str | None = None
        """Why the last round could not be made; None where it was."""
        self.last_s = 0.0
        """How long it took to look at both sides."""
        self._missing: frozenset[str] = frozenset()
        self._drained: frozenset[str] | None = None
        """Servers that are drained because Slurm took them out; history says which before the first round."""
        self._one = threading.Lock()
        self._state = threading.Condition()
        self._hinted = self._stopped = self._soon = False
        self._began = self._ended = 0
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> Bridge:
        self._unsubscribe = self.writer.news.call(self.hint)
        self._thread = threading.Thread(target=self._run, name="ropewalk-slurm", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
        with self._state:
            self._stopped = True
            self._state.notify_all()
        if self._thread is not None:
            self._thread.join(self.settings.commands.timeout_s)

    def hint(self) -> None:
        """Something may have changed: look soon."""
        with self._state:
            self._hinted = True
            self._state.notify_all()

    def wait_for_round(self, timeout_s: float) -> bool:
        """Wait for a round that begins after now; True where there was one in time."""
        with self._state:
            target = self._began + 1
            self._hinted = True
            self._state.notify_all()
            return self._state.wait_for(lambda: self._ended >= target or self._stopped, timeout_s)

    def once(self) -> tuple[Step, ...]:
        """One round; what went wrong with a single step is logged, and the next round tries again."""
        with self._one:
            steps = self._look()
            actor = Actor(self.writer, self.settings.commands)
            together = [step for step in steps if isinstance(step, Finish | Attach)]
            # They stand first, and all of them are asked for before any is answered: that is one commit.
            for first, future in [(step, actor.begin(step)) for step in together]:
                self._take(first, partial(future.result, READ_S))
            for step in steps[len(together) :]:
                self._take(step, partial(actor.take, step))
            return steps

    def _look(self) -> tuple[Step, ...]:
        """What to do, by what both sides say now."""
        began = time.monotonic()
        slurm = self.settings.commands.queue()
        nodes = self.settings.commands.nodes()
        self._soon = any(job.completing for job in slurm)
        view = self.writer.read(view_of).result(READ_S)
        if self._drained is None:
            self._drained = drained_for_slurm(self.writer.store.events_of(KINDS))
        self._drained = sync_servers(self.writer, nodes, view, self._drained)
        seen = Seen(slurm, view.ours, view.servers, time.time(), view.cancelled, self._missing)
        steps = decide(seen, self.settings.partitions, self.settings.patience)
        self._missing = missing(seen)
        self.last_s = time.monotonic() - began
        return steps

    def metrics(self) -> dict[str, float]:
        """What the bridge has done and how it is, by short names."""
        return {
            **{f"step_{kind}": float(number) for kind, number in sorted(self.taken.items())},
            "rounds": float(self.rounds),
            "failed_steps": float(sum(self.failed.values())),
            "reachable": float(self.problem is None),
            "round_seconds": self.last_s,
        }

    def status(self) -> dict[str, Any]:
        """The same for people and programs."""
        return {
            "reachable": self.problem is None,
            "problem": self.problem,
            "rounds": self.rounds,
            "round_s": round(self.last_s, 6),
            "steps": dict(sorted(self.taken.items())),
            "failed_steps": dict(sorted(self.failed.items())),
            "partitions": list(self.settings.partitions),
            "drained_for_slurm": sorted(self._drained or ()),
        }

    def _take(self, step: Step, do: Callable[[], object]) -> None:
        kind = WORDS[type(step)]
        try:
            do()
        except RopewalkError as problem:
            self.failed[kind] += 1
            self._tell("slurm-step-failed", level="warning", step=kind, why=str(problem), **told(step))
        else:
            self.taken[kind] += 1
            self._tell("slurm-step", step=kind, **told(step))

    def _run(self) -> None:
        while not self._stopped:
            with self._state:
                self._hinted = False
                self._began += 1
            self._round()
            with self._state:
                self._ended = self._began
                self._state.notify_all()
                rest_s = min(max(SHORTEST_S, REST * self.last_s), self.settings.poll_s)
                self._state.wait_for(lambda: self._stopped, rest_s)
                wait_s = min(SOON_S, self.settings.poll_s) if self._soon else self.settings.poll_s
                self._state.wait_for(lambda: self._hinted or self._stopped, wait_s)

    def _round(self) -> None:
        try:
            self.once()
            self.rounds += 1
            if self.problem is not None:
                self._tell("slurm-answers")
            self.problem = None
        except Exception as problem:
            if self.problem != str(problem):
                self._tell("slurm-silent", level="warning", why=str(problem))
            self.problem = str(problem)
