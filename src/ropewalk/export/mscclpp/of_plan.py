"""The collectives of a plan that NCCL does not have, as MSCCL++ plans: one file for each collective of each purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ropewalk.collectives.act import ROOTED
from ropewalk.collectives.group import Group
from ropewalk.collectives.program import Program
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import InputError
from ropewalk.export.meetings import Meeting, meetings_of
from ropewalk.export.mscclpp import prove_plan, read_mscclpp, write_mscclpp
from ropewalk.export.nccl.of_plan import in_nccl
from ropewalk.plans import Plan


def mscclpp_meetings(plan: Plan) -> list[Meeting]:
    """What has to run on MSCCL++."""
    return [meeting for meeting in meetings_of(plan) if not in_nccl(meeting)]


def write_meeting(plan: Plan, meeting: Meeting, folder: Path) -> Path:
    """Write what one kind of group runs, and prove what is read back; its other groups run the same file.

    MSCCL++ chooses by collective, size and ranks, so the file is for the sizes of the plan alone.
    """
    program = _program(plan, meeting)
    if program.ranks > len(meeting.ranks):
        raise InputError(
            f"{meeting.purpose}: servers outside the group forward in {meeting.name}, which MSCCL++ cannot say: plan "
            f"another collective, --algorithm {meeting.purpose}=ring"
        )
    path = folder / f"{meeting.purpose}-{meeting.act.key}-{len(meeting.ranks)}.json"
    write_mscclpp(program, path, collective=meeting.act.key, channel=_channels(plan, meeting))
    prove_plan(read_mscclpp(path), 0 if meeting.act in ROOTED else None)
    return path


def _program(plan: Plan, meeting: Meeting) -> Program:
    record = COLLECTIVES[meeting.name]
    known = meeting.groups == 1 or record.own_paths
    group = Group(
        meeting.servers,
        fabric=plan.fabric() if known else None,
        members=meeting.ranks if known else (),
    )
    made = COLLECTIVES.fitting(meeting.name, meeting.act, group)
    return made.program(meeting.act, group)


def _channels(plan: Plan, meeting: Meeting) -> Callable[[int, int], str]:
    """Inside a server ranks share memory, between servers a NIC copies."""
    server = [number for number, size in enumerate(plan.cluster.server_sizes) for _ in range(size)]

    def channel(src: int, dst: int) -> str:
        return "memory" if server[meeting.ranks[src]] == server[meeting.ranks[dst]] else "port"

    return channel
