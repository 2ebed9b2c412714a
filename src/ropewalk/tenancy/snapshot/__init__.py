"""Snapshot of a cluster, looked at closely: the jobs that run then, simulated together at any level."""

from ropewalk.tenancy.snapshot.answer import JobSeen, Snapshot, answer
from ropewalk.tenancy.snapshot.moment import moment_of_replay, moment_of_state, moments_of_replay
from ropewalk.tenancy.snapshot.question import SnapshotQuestion
from ropewalk.tenancy.snapshot.tenant import Moment, Tenant

__all__ = [
    "JobSeen",
    "Moment",
    "Snapshot",
    "SnapshotQuestion",
    "Tenant",
    "answer",
    "moment_of_replay",
    "moment_of_state",
    "moments_of_replay",
]
