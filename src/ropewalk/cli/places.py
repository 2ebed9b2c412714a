"""The fabric that an argument names: an expression, a fabric file or a plan; and groups of its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lists import split
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.plans import Plan

NAMED = (
    "A builder expression (torus:4x4, dgx-a100:2), a fabric file (.yaml, .json, .graphml), an NCCL topology (.xml), or "
    "a plan (its wiring, or the network of its cluster)."
)


def plan_named(text: str) -> Plan | None:
    """The plan of a file; None where the argument names something else."""
    path = Path(text)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    from ropewalk.documents import decode, read_bytes
    from ropewalk.plans import is_plan, loads

    subject = f"plan {path}"
    content = decode(read_bytes(path, subject, InputError), subject, InputError)
    return loads(content, subject) if is_plan(content) else None


def fabric_named(
    text: str, *, plan: Plan | None, bandwidth: str | None = None, latency: str | None = None, hosts: int | None = None
) -> Fabric:
    """The fabric; a plan has settled its speeds and sizes."""
    if plan is not None:
        said = {"--bandwidth": bandwidth, "--latency": latency, "--hosts": hosts}
        refuse(
            [name for name, value in said.items() if value is not None], f"{text} is a plan and says it: leave it out"
        )
        return plan.fabric()
    from ropewalk.fabric.expression import fabric

    return fabric(
        text,
        bandwidth=None if bandwidth is None else units.bandwidth(bandwidth),
        latency=None if latency is None else units.seconds(latency),
        hosts=hosts,
    )


def group_named(text: str, fabric: Fabric, plan: Plan | None) -> Sequence[int]:
    """Hosts of a group: by name or number, or the ranks of a plan that meet for a purpose (`data`, `tensor:3`)."""
    if plan is not None:
        from ropewalk.plans.groups import PURPOSES, group_of

        purpose, _, number = text.partition(":")
        if purpose in PURPOSES:
            if number and not number.isdecimal():
                raise InputError(f"group {text!r} has no number: write it like {purpose}:0")
            return group_of(plan, purpose, int(number or 0))
    return [host_named(fabric, name) for name in split(text)]


def host_named(fabric: Fabric, text: str) -> int:
    """A host by its name or its number."""
    names = fabric.node_names[: fabric.hosts]
    if text in names:
        return names.index(text)
    if text.isdecimal() and int(text) < fabric.hosts:
        return int(text)
    some = ", ".join(names[:4])
    raise InputError(
        f"{text!r} is no host of {fabric.name}: give a number below {fabric.hosts} or a name such as {some}"
    )
