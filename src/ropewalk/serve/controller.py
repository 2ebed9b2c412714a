"""The state machine: operations in, outcomes out; no I/O, no clock.

>>> from ropewalk.serve.operation import End, Submit
>>> from ropewalk.tenancy.plant import plant
>>> controller = Controller.empty(plant("leaf-spine:4x8x8", gpus_per_server=4))
>>> started = controller.apply(Submit("train", 16), now=0.0).answer
>>> started["id"], started["state"], started["allocation"]["leafs"]
('j1', 'running', ['leaf0', 'leaf1'])
>>> controller.apply(Submit("wide", 32), now=1.0).answer["reason"]["message"]
'32 GPUs are requested, 16 are free'
>>> [event.kind for event in controller.apply(End("j1"), now=2.0).events]
['job-ended', 'job-started']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.serve import operation as asked
from ropewalk.serve.dispatch import look_at_head
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Operation
from ropewalk.serve.outcome import Outcome
from ropewalk.serve.settings import Settings
from ropewalk.serve.state import Counters, State
from ropewalk.serve.steps import adopting, lifecycle, parts, policy, resizing
from ropewalk.serve.steps.progress import progress
from ropewalk.serve.steps.requeue import requeue
from ropewalk.serve.steps.rules import note_rules
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.plant import Plant

STEPS: dict[type[Any], Callable[[Turn, Any], dict[str, Any]]] = {
    asked.Submit: lifecycle.submit,
    asked.Adopt: adopting.adopt,
    asked.End: lifecycle.end,
    asked.Cancel: lifecycle.cancel,
    asked.Resize: resizing.resize,
    asked.Hold: lifecycle.hold,
    asked.Release: lifecycle.release,
    asked.Requeue: requeue,
    asked.Bind: lifecycle.bind,
    asked.Progress: progress,
    asked.Drain: parts.drain,
    asked.Restore: parts.restore,
    asked.Fail: parts.fail,
    asked.Repair: parts.repair,
    asked.ChangePolicy: policy.change,
    asked.RulesGone: lifecycle.rules_gone,
    asked.NoteRules: note_rules,
    asked.Expire: lifecycle.expire,
}


class Controller:
    """A state and the operations on it."""

    def __init__(self, state: State) -> None:
        self.state = state

    @classmethod
    def empty(cls, plant: Plant, settings: Settings | None = None) -> Controller:
        """A cluster on which nothing runs."""
        chosen = settings or Settings()
        chosen.check(plant)
        return cls(State(plant, chosen, chosen.rule.occupancy(plant)))

    @classmethod
    def from_documents(
        cls,
        plant: Plant,
        settings: Settings,
        jobs: Iterable[ServedJob],
        *,
        drained: Drained | None = None,
        failed: Drained | None = None,
        counters: Counters | None = None,
        now: float = 0.0,
    ) -> Controller:
        """The state that a store has kept: every job is placed anew, and double use is refused."""
        controller = cls.empty(plant, settings)
        state = controller.state
        state.now = now
        for job in sorted(jobs, key=_taken_up_by):
            _take_up(state, job)
        state.drained, state.failed = drained or Drained(), failed or Drained()
        state.keep_out()
        state.next_job = max(state.next_job, (counters or Counters()).next_job)
        look_at_head(state)
        return controller

    def apply(self, operation: Operation, now: float, actor: str = "") -> Outcome:
        """Carry out an operation wholly, or raise `Refused` and change nothing."""
        turn = Turn(self.state, max(now, self.state.now), actor)
        answer = STEPS[type(operation)](turn, operation)
        self.state.now = turn.now
        return turn.outcome(answer)

    @property
    def next_expiry(self) -> float | None:
        """When a reservation may run out, or None."""
        return self.state.expiries[0][0] if self.state.expiries else None


def _taken_up_by(job: ServedJob) -> tuple[bool, float, int]:
    """Those that are over first, in the order in which they ended; live ones by number."""
    return job.live, 0.0 if job.live else job.ended_at or 0.0, job.number


def _take_up(state: State, job: ServedJob) -> None:
    state.next_job = max(state.next_job, job.number + 1)
    state.keep(job)
    if job.state == "running":
        if job.allocation is None:
            raise ClusterError(f"job {job.id} runs but holds nothing: restore the database from a backup")
        state.take(job.allocation, on_drained=True)
    for generation, held in job.releasing:
        state.occupancy.keep_links(f"{job.id}/{generation}", held)
    if job.waits_in_line:
        state.enqueue(job)
    if job.state != "ended":
        state.watch_expiry(job)
