"""What the processes of a Gloo run do: enter their host, make the groups of their jobs there, time a collective.

The functions are called in the processes of `LocalRanks`; groups stay for the next call. All processes read the same
clock, so the times of different ranks can be compared.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ropewalk.lab.machine import Watch
from ropewalk.lab.namespaces import Namespace

_mine: dict[str, Any] = {}


@dataclass(frozen=True)
class RankRun:
    """One run of a collective as one rank saw it."""

    began: float
    ended: float
    right: bool
    """Whether every number that it ended with is the one that the collective promises."""
    machine: dict[str, Any]
    """The fields of a `MachineUse`."""


def enter(host: Namespace, groups: tuple[tuple[int, ...], ...]) -> None:
    """Move this process onto the links of its host, and make the groups of all jobs there."""
    import torch.distributed as dist

    host.enter()
    everybody = dist.new_group(backend="gloo")
    for members in groups:
        made = dist.new_group(list(members), backend="gloo")
        if dist.get_rank() in members:
            _mine.update(group=made, rank=members.index(dist.get_rank()), ranks=len(members), first=members[0])
    _mine["everybody"] = everybody
    dist.barrier(everybody)


def run(act: str, items: int) -> RankRun:
    """One run of a collective of whole numbers; all jobs begin together."""
    import torch
    import torch.distributed as dist

    group, rank, ranks = _mine["group"], _mine["rank"], _mine["ranks"]
    own = torch.arange(items, dtype=torch.int32) % 1000 + rank
    each = items // ranks
    got = torch.zeros(each if act == "reducescatter" else items, dtype=torch.int32)
    calls = {
        "allreduce": lambda: dist.all_reduce(own, group=group),
        "allgather": lambda: dist.all_gather_into_tensor(got, own[:each].contiguous(), group=group),
        "reducescatter": lambda: dist.reduce_scatter_tensor(got, own, group=group),
        "alltoall": lambda: dist.all_to_all_single(got, own, group=group),
        "broadcast": lambda: dist.broadcast(own, src=_mine["first"], group=group),
    }
    dist.barrier(_mine["everybody"])
    watch, began = Watch(), time.monotonic()
    calls[act]()
    ended, machine = time.monotonic(), watch.seen()
    result = own if act in ("allreduce", "broadcast") else got
    return RankRun(began, ended, bool(torch.equal(result, _promised(act, rank, ranks, items))), machine)


def _promised(act: str, rank: int, ranks: int, items: int) -> Any:
    """The numbers that a rank must end with."""
    import torch

    ramp = torch.arange(items, dtype=torch.int32) % 1000
    each = items // ranks
    if act in ("allreduce", "reducescatter"):
        total = ranks * ramp + ranks * (ranks - 1) // 2
        return total if act == "allreduce" else total[rank * each : (rank + 1) * each]
    if act == "allgather":
        return torch.cat([ramp[:each] + other for other in range(ranks)])
    if act == "alltoall":
        return torch.cat([ramp[rank * each : (rank + 1) * each] + other for other in range(ranks)])
    return ramp
