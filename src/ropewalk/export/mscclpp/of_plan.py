"""The collectives of a plan that NCCL does not have, as MSCCL++ plans: one file for each collective of each purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ropewalk.collectives.act import ROOTED
from ropewalk.collectives.group import Group
from ropewalk.collectives.program import Program
from ropewalk.collectives.table import COLLECTIVES, with_rings
from ropewalk.errors import Findings, InputError, PlanError
from ropewalk.export.meetings import GroupMeeting, meetings_of
from ropewalk.export.mscclpp import prove_plan, read_mscclpp, write_mscclpp
from ropewalk.export.mscclpp.plan import ALIGNMENT
from ropewalk.export.nccl.of_plan import in_nccl
from ropewalk.export.ranks import seats_of
from ropewalk.plans import Plan
from ropewalk.strategy.placement import DEFAULT_ORDER


def mscclpp_meetings(plan: Plan) -> list[GroupMeeting]:
    """What has to run on MSCCL++; refused where it would take other collectives of the plan for these."""
    every = meetings_of(plan)
    found = [meeting for meeting in every if not in_nccl(meeting)]
    findings = Findings(PlanError, "MSCCL++ plans")
    for meeting in found:
        for other in every:
            if meeting.takes_over(other) and (meeting.name, meeting.servers) != (other.name, other.servers):
                findings.add(
                    f"{meeting.act.words} of {len(meeting.ranks)} ranks is {meeting.name} for {meeting.purpose} and "
                    f"{other.name} for {other.purpose}, which MSCCL++ cannot tell apart: plan one collective for both"
                )
    findings.raise_if_any()
    return found


def write_meeting(plan: Plan, meeting: GroupMeeting, folder: Path) -> Path:
    """Write what one kind of group runs, and prove what is read back; its other groups run the same file.

    MSCCL++ chooses by collective, ranks and size, so the file is for sizes from the smallest of the plan on.
    """
    _check_numbers(plan, meeting)
    program = _program(plan, meeting)
    if program.ranks > len(meeting.ranks):
        raise InputError(
            f"{meeting.purpose}: servers outside the group forward in {meeting.name}, which MSCCL++ cannot express: "
            "plan "
            f"another collective, --algorithm {meeting.purpose}=ring"
        )
    path = folder / f"{meeting.purpose}-{meeting.act.key}-{len(meeting.ranks)}.json"
    least = max(1, meeting.least_bytes // ALIGNMENT) * ALIGNMENT
    write_mscclpp(program, path, collective=meeting.act.key, channel=_channels(plan, meeting), min_message_size=least)
    prove_plan(read_mscclpp(path), 0 if meeting.act in ROOTED else None)
    return path


def _check_numbers(plan: Plan, meeting: GroupMeeting) -> None:
    """A framework numbers the ranks of a group as they ascend, and so has to the file."""
    rank_of_gpu = [seat.rank for seat in seats_of(plan)]
    ranks = [rank_of_gpu[gpu] for gpu in meeting.ranks]
    if ranks != sorted(ranks):
        raise InputError(
            f"{meeting.purpose}: {meeting.name} numbers the ranks of a group {ranks[:4]}…, but frameworks number them "
            f"in ascending order: plan with the default placement ({DEFAULT_ORDER}), or with --algorithm "
            f"{meeting.purpose}=ring"
        )


def _program(plan: Plan, meeting: GroupMeeting) -> Program:
    table = COLLECTIVES if plan.designed is None else with_rings(plan.designed.wiring.ring_orders)
    known = meeting.groups == 1 or table[meeting.name].own_paths
    group = Group(
        meeting.servers,
        fabric=plan.fabric() if known else None,
        members=meeting.ranks if known else (),
    )
    return table.fitting(meeting.name, meeting.act, group).program(meeting.act, group)


def _channels(plan: Plan, meeting: GroupMeeting) -> Callable[[int, int], str]:
    """Inside a server ranks share memory, between servers a NIC copies."""
    server = [number for number, size in enumerate(plan.cluster.server_sizes) for _ in range(size)]

    def channel(src: int, dst: int) -> str:
        return "memory" if server[meeting.ranks[src]] == server[meeting.ranks[dst]] else "port"

    return channel
