"""Who starts now: heads of the line while they fit, then whoever the backfill lets past."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.serve.healing import MOST_TRIED, heal
from ropewalk.serve.job import ServedJob
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import State
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.backfill import DEPTH, QueueMoment, Waiter
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.pinned import gpus_of_servers, pinned


def dispatch(turn: Turn) -> None:
    """Start everybody whom the order of the queue and the policy allow, after jobs that have lost links."""
    state = turn.state
    if turn.freed and state.degraded:
        heal(turn, MOST_TRIED)
    while (found := look_at_head(state)) is not None:
        turn.start(state.jobs[found.job], found)
    passing = state.settings.passing
    if passing is None:
        return
    while len(state.line) > 1 and (passed := passing(_moment(state, turn.now))) is not None:
        number, given = passed
        turn.start(state.jobs[f"j{number}"], given)
        look_at_head(state)  # it still does not fit, perhaps for another reason


def look_at_head(state: State) -> Allocation | None:
    """What the first in the line would get now; None where there is nobody, or where it lacks something."""
    head = state.line.head
    if head is None or state.tried == (head, state.changes):
        return None
    found = place_of(state, state.occupancy, state.jobs[f"j{head}"])
    if isinstance(found, Allocation):
        return found
    state.tried, state.lack = (head, state.changes), found
    return None


def place_of(state: State, occupancy: Occupancy, job: ServedJob) -> Allocation | Waiting:
    """What a job would get on a cluster in this state, or why it waits."""
    rule = state.settings.rule
    if not job.servers:
        return rule.make(occupancy, job.id, job.gpus)
    chosen = gpus_of_servers(occupancy, server_numbers(state, job.servers), job.gpus)
    return chosen if isinstance(chosen, Waiting) else pinned(rule, occupancy, job.id, chosen)


def server_numbers(state: State, names: Sequence[str]) -> list[int]:
    """Servers by name; names that the plant does not have are refused together."""
    unknown = [name for name in names if name not in state.server_number]
    if unknown:
        raise Refused(
            "not-found", f"{state.plant.name} has no server {', '.join(unknown[:8])}",
            f"use names such as {state.plant.server_names[0]}", {"servers": unknown},
        )  # fmt: skip
    return [state.server_number[name] for name in names]


def check_possible(state: State, job: ServedJob) -> None:
    """Refuse a job that could not start on the empty plant."""
    never = why_never(state, job)
    if never is not None:
        raise Refused(
            "impossible",
            f"{job.gpus} GPUs can never be allocated on {state.plant.name} under {state.settings.policy}: "
            f"{never.explanation}",
            _to_be_possible(state, job),
            {"reason": never.reason.value, "gpus": job.gpus, "policy": state.settings.policy},
        )


def _to_be_possible(state: State, job: ServedJob) -> str:
    if job.servers:
        return "ask for other servers"
    if job.gpus > state.plant.gpus:
        return f"ask for {state.plant.gpus} GPUs or fewer"
    return "ask for another number of GPUs, or choose another policy"


def why_never(state: State, job: ServedJob) -> Waiting | None:
    """What a job lacks on the empty plant; None where it could start there."""
    if job.servers:
        found = place_of(state, state.empty, job)
        return found if isinstance(found, Waiting) else None
    if job.gpus not in state.possible:
        found = place_of(state, state.empty, job)
        state.possible[job.gpus] = found if isinstance(found, Waiting) else None
    return state.possible[job.gpus]


def _moment(state: State, now: float) -> QueueMoment:
    jobs = state.jobs

    def allocate(occupancy: Occupancy, name: str, gpus: int) -> Allocation | Waiting:
        return place_of(state, occupancy, jobs[name])

    first = (jobs[f"j{number}"] for number in state.line.first(DEPTH))
    waiting = [Waiter(job.number, job.id, job.gpus, state.run_s(job)) for job in first]
    running = (job for job in jobs.values() if job.state == "running")
    ends = sorted((float(job.started_at or 0.0) + state.run_s(job), job.id) for job in running)
    return QueueMoment(now, state.occupancy, allocate, waiting, ends)
