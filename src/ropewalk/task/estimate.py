"""How long the collectives of one purpose would take if nothing else ran: a quick estimate, to rank candidates by.

All groups of the purpose run at once. It takes as long as the busiest link needs for the bytes of all of them, no less
than any transfer needs at its cap, and before that the start-ups and rounds of every launch of a group.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.errors import InputError
from ropewalk.task.expand import Expansion
from ropewalk.task.graph import TaskKind
from ropewalk.task.kinds import Use
from ropewalk.task.step import Step


def of_purpose(step: Step, purpose: str) -> Step:
    """The collectives of one purpose, all launches of a group as one operation, without anything to wait for."""
    chosen = np.flatnonzero(_meets(step) & (step.stream == step.streams.index(purpose)))
    key, first, which = np.unique(
        step.act[chosen].astype(np.int64) * max(len(step.groups), 1) + step.group[chosen],
        return_index=True,
        return_inverse=True,
    )
    one = chosen[first]
    amount = np.bincount(which, step.amount[chosen], minlength=len(key)).astype(np.float64)
    launches = np.bincount(which, step.repeats[chosen], minlength=len(key)).astype(np.int32)
    return replace(
        step, act=step.act[one], rank=step.rank[one], peer=step.peer[one], group=step.group[one], amount=amount,
        stream=step.stream[one], priority=step.priority[one], label=step.label[one],
        dep_start=np.zeros(len(one) + 1, np.int64), dep=np.zeros(0, np.int32), repeats=launches,
    )  # fmt: skip


def purposes_of(step: Step) -> tuple[str, ...]:
    """Purposes for which ranks meet, in the order of the streams."""
    return tuple(step.streams[stream] for stream in np.unique(step.stream[_meets(step)]).tolist())


def _meets(step: Step) -> NDArray[np.bool_]:
    size = np.array([len(group) for group in step.groups] or [0])
    return np.asarray((step.act >= Act.ALL_REDUCE) & (step.act != Act.BARRIER) & (size[step.group] > 1), bool)


@dataclass(frozen=True)
class CollectiveEstimate:
    """Seconds of the collectives of one purpose, and a fingerprint of what they would run."""

    seconds: float
    runs: tuple[str, ...]


def estimated(part: Step, name: str, use: Use) -> CollectiveEstimate:
    """All collectives of a purpose run by one collective of the table."""
    assert use.router is not None
    written = Expansion.of(part, replace(use, choice=CollectiveChoice(name)))
    expansion, routes = written.routed(use.router)
    graph, runs = expansion.graph, tuple(kind.digest() for kind in expansion.kinds)
    task = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if not len(task):
        return CollectiveEstimate(0.0, runs)
    load = routes.link_bytes(routes.rows_of(graph, task), graph.amount[task]) / routes.fabric.bandwidth
    capped = graph.amount[task] / graph.rate_cap[task]
    return CollectiveEstimate(float(graph.start_up[task].max() + max(load.max(), capped.max())), runs)


def ranked(
    part: Step, use: Use, rings: CollectiveEstimate, names: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Collectives that apply to a purpose and differ from rings and from each other, fastest first by estimate.

    Beside them notes on those that were not looked at.
    """
    acts = {Act(int(act)) for act in np.unique(part.act)}
    most = max((len(part.groups[group]) for group in part.group.tolist()), default=0)
    found: dict[str, CollectiveEstimate] = {"ring": rings}
    notes = []
    for name, one in use.table.items():
        if not acts & one.make.keys() or one.auto_up_to == 0 or name in found or name not in (names or use.table):
            continue
        if one.auto_up_to is not None and most > one.auto_up_to:
            notes.append(f"{name} was not tried for groups of {most} ranks, more than {one.auto_up_to}")
            continue
        try:
            estimate = estimated(part, name, use)
        except InputError:
            continue  # it does not apply to some group
        if all(estimate.runs != other.runs for other in found.values()):
            found[name] = estimate
    del found["ring"]
    return sorted(found, key=lambda name: found[name].seconds), notes
