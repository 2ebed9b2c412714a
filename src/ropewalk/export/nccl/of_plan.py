"""What NCCL is told of a plan: its algorithm for every collective of every group, as a table for the tuner plugin."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import Findings, PlanError
from ropewalk.export.meetings import GroupMeeting, meetings_of
from ropewalk.export.nccl.tuner import ALGORITHMS, TunerRow, to_csv
from ropewalk.plans import Plan

NCCLS = {
    "ring": "ring",
    "ring-one-way": "ring",
    "double-ring": "ring",
    "best-ring": "ring",
    "double-tree": "tree",
}
"""What NCCL calls the collectives that it has."""
PROTOCOL = "simple"


def in_nccl(meeting: GroupMeeting) -> bool:
    """Does NCCL have it? Its rings have its own order; an all-to-all is sends and receives, with nothing to choose."""
    if meeting.along_cables:
        return False
    if COLLECTIVES[meeting.name].chooses:
        return True
    known = ALGORITHMS.get(meeting.act.key)
    return (known is None and meeting.name == "direct") or NCCLS.get(meeting.name) in (known or ())


def tuner_rows_of(plan: Plan) -> list[TunerRow]:
    """A row for each collective of each group that NCCL has a choice for, over the sizes that the plan sends.

    Groups whose choice the plan leaves to NCCL have none.

    NCCL lays two channels over each ring, and there is a ring for each rank that a group has in a server.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> plan = Plan(ModelUse("gpt2", 64), read_cluster("2x4"), Strategy(data=8))
    >>> [(row.collective, row.algorithm, row.channels, row.nodes, row.ranks) for row in tuner_rows_of(plan)]
    [('allreduce', 'ring', 8, 2, 8)]
    """
    findings = Findings(PlanError, "tuner table")
    rows: dict[tuple[str, int, int], tuple[str, TunerRow]] = {}
    for meeting in meetings_of(plan):
        if meeting.act.key not in ALGORITHMS or not in_nccl(meeting) or COLLECTIVES[meeting.name].chooses:
            continue
        key = meeting.act.key, len(meeting.servers), len(meeting.ranks)
        span = _at_most(meeting.least_bytes), _at_least(meeting.most_bytes)
        row = TunerRow(key[0], *span, NCCLS[meeting.name], PROTOCOL, 2 * max(meeting.servers), *key[1:])
        purpose, other = rows.setdefault(key, (meeting.purpose, row))
        if other.algorithm != row.algorithm:
            findings.add(
                f"{meeting.act.words} of {key[2]} ranks on {key[1]} servers is {other.algorithm} for {purpose} and "
                f"{row.algorithm} for {meeting.purpose}, which NCCL cannot tell apart: plan one collective for both"
            )
        low, high = min(other.min_bytes, row.min_bytes), max(other.max_bytes, row.max_bytes)
        rows[key] = purpose, replace(other, min_bytes=low, max_bytes=high)
    findings.raise_if_any()
    return [row for _, row in rows.values()]


def tuner_table(rows: list[TunerRow]) -> str | None:
    """The table for the plugin: groups over several servers; inside one NCCL is left to choose. None without any."""
    across = [row for row in rows if row.nodes > 1]
    return to_csv(across) if across else None


def _at_most(size_bytes: int) -> int:
    """A power of two, or 0."""
    return 1 << (size_bytes.bit_length() - 1) if size_bytes else 0


def _at_least(size_bytes: int) -> int:
    return 1 << max(0, size_bytes - 1).bit_length()
