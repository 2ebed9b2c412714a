"""A moment of a cluster, looked at closely: the jobs that run then, simulated together at any level."""

from ropewalk.cluster.snapshot.answer import JobSeen, Snapshot, answer
from ropewalk.cluster.snapshot.moment import moment_of_replay, moment_of_state
from ropewalk.cluster.snapshot.question import SnapshotQuestion
from ropewalk.cluster.snapshot.tenant import Moment, Tenant

__all__ = [
    "JobSeen",
    "Moment",
    "Snapshot",
    "SnapshotQuestion",
    "Tenant",
    "answer",
    "moment_of_replay",
    "moment_of_state",
]
