"""The fabric that an argument names: an expression, a fabric file or a plan; and groups of its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lists import split
from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError
from ropewalk.files import is_file

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.hardware import Cluster
    from ropewalk.plans import Plan

NAMED = (
    "A builder expression (torus:4x4, dgx-a100:2), a fabric file (.yaml, .json, .graphml), an NCCL topology (.xml), "
    "a plan (its wiring, or the network of its cluster), a cluster file, or servers x GPUs (4x8). With --cluster: the "
    "network between its servers."
)


def plan_named(text: str | None) -> Plan | None:
    """The plan of a file; None where the argument names something else."""
    path = Path(text or "")
    if path.suffix.lower() != ".json" or not is_file(path):
        return None
    from ropewalk.documents import read_text
    from ropewalk.plans import is_plan, loads

    subject = f"plan {path}"
    content = read_text(path, subject, InputError)
    return loads(content, subject, path.parent) if is_plan(content) else None


def refuse_plan(text: str, remedy: str) -> None:
    """Refuse a plan where a model is wanted, with what can be done with it."""
    if plan_named(text) is not None:
        raise InputError(f"{text} is a plan, not a model: {remedy}")


def fabric_named(text: str | None, place: ClusterOptions, *, plan: Plan | None, hosts: int | None = None) -> Fabric:
    """The fabric that an argument names, between the servers of `--cluster` where one is given."""
    if plan is not None:
        said = {"--hosts": hosts, **place.typed()}
        refuse(
            [name for name, value in said.items() if value is not None],
            f"{text} is a plan and already fixes it: leave it out",
        )
        return plan.fabric()
    if place.cluster is not None or (text is not None and _names_servers(text)):
        refuse([] if hosts is None else ["--hosts"], "a cluster fixes its own hosts: leave it out")
        return _cluster_named(text, place).fabric()
    if text is None:
        raise InputError("name a fabric such as torus:4x4, or a cluster with --cluster, such as --cluster 4x8")
    bare = ("--bandwidth", "--hop-latency")
    refuse(
        [name for name, value in place.typed().items() if value is not None and name not in bare],
        f"{text} is a fabric of plain hosts: name servers with --cluster, such as --cluster 4x8, or leave it out",
    )
    from ropewalk.fabric.expression import fabric

    given = place.given()
    return fabric(text, bandwidth=given.nic_bandwidth, latency=given.latency_s, hosts=hosts)


def _names_servers(text: str) -> bool:
    """Is this a shape such as 4x8, or a cluster file?"""
    from ropewalk.hardware.read import is_cluster_file
    from ropewalk.hardware.shape import is_shape

    return is_shape(text) or is_cluster_file(text)


def _cluster_named(text: str | None, place: ClusterOptions) -> Cluster:
    """The cluster of `--cluster`, on the fabric that the argument names; or the cluster that the argument names."""
    if place.cluster is None:
        return replace(place, cluster=text).described()
    if text is not None and place.fabric is not None:
        raise InputError(f"there are two networks, {text} and --fabric {place.fabric}: leave one of the two out")
    return (place if text is None else replace(place, fabric=text)).described()


def group_named(text: str, fabric: Fabric, plan: Plan | None) -> Sequence[int]:
    """Hosts of a group: by name or number, or the ranks of a plan that meet for a purpose (`data`, `tensor:3`)."""
    purpose, _, number = text.partition(":")
    if plan is None or not purpose.isalpha() or purpose in fabric.node_names:
        return [host_named(fabric, name) for name in split(text)]
    from ropewalk.training.planned import groups_of

    groups = groups_of(plan)
    if purpose not in groups:
        known = ", ".join(groups) or "none"
        raise InputError(f"the plan has no groups for {purpose!r} ({plan.strategy.said()}): choose one of {known}")
    if number and not (is_count(number) and int(number) < len(groups[purpose])):
        raise InputError(f"the plan has {len(groups[purpose])} {purpose} groups: write {purpose}:0, {purpose}:1, ...")
    return groups[purpose][int(number or 0)]


def host_named(fabric: Fabric, text: str) -> int:
    """A host by its name or its number."""
    names = fabric.node_names[: fabric.hosts]
    if text in names:
        return names.index(text)
    if is_count(text) and int(text) < fabric.hosts:
        return int(text)
    some = ", ".join(names[:4])
    raise InputError(
        f"{text!r} is not a host of {fabric.name}: give a number below {fabric.hosts} or a name such as {some}"
    )
