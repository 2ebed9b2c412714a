"""Who meets whom: links that several jobs use, and at packet level who was paused where others stood in the way.

A pause frame stops a link because packets that came over it wait in the switch behind. They wait for the links they
leave on. So a job is paused by those who use one of these next links, or the stopped link itself, too; where nobody
else does, by itself. A frame that several jobs stand behind counts for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.sim.level import PacketFacts
from ropewalk.task import TaskKind
from ropewalk.tenancy.snapshot.tasks import Together


@dataclass(frozen=True, eq=False)
class PacketsSeen:
    """What packets of jobs met, by job."""

    paused: Ints
    """[paused, by]: pause frames."""
    nic_pauses: Ints
    """Pause frames that its GPUs received."""
    marks: Ints
    drops: Ints
    """On links that it uses, whoever's packets they were."""

    def paused_by(self, job: int, names: Sequence[str]) -> dict[str, int]:
        """Who stood in the way when a job was paused, and in how many frames; itself included."""
        return {name: int(frames) for name, frames in zip(names, self.paused[job], strict=True) if frames}

    def as_json(self, job: int, names: Sequence[str]) -> dict[str, Any]:
        return {
            "pauses_of_its_gpus": int(self.nic_pauses[job]),
            "paused_by": self.paused_by(job, names),
            "marks_on_its_links": int(self.marks[job]),
            "drops_on_its_links": int(self.drops[job]),
        }


@dataclass(frozen=True, eq=False)
class Meetings:
    """Jobs by links, and jobs by jobs."""

    shared: Ints
    """[job, job]: links that both use; on the diagonal all links of a job."""
    packets: PacketsSeen | None = None
    """None where no packets were sent."""

    def neighbours(self, job: int, names: Sequence[str]) -> dict[str, int]:
        """Who shares links with a job, and how many."""
        row = enumerate(zip(names, self.shared[job].tolist(), strict=True))
        return {name: links for other, (name, links) in row if links and other != job}


def meetings_of(together: Together, packets: PacketFacts | None, jobs: int) -> Meetings:
    """What the paths of all jobs have in common, and what packets did there."""
    uses, following = _links_of_jobs(together, jobs)
    count = uses.astype(np.int64)
    if packets is None:
        return Meetings(count @ count.T)
    fabric = together.routes.fabric
    of_gpus = np.where(fabric.link_src < fabric.hosts, packets.link_pauses, 0)
    return Meetings(
        count @ count.T,
        PacketsSeen(
            _paused(uses, following, packets.link_pauses),
            count @ of_gpus,
            count @ packets.link_marks,
            count @ packets.link_drops,
        ),
    )


def _links_of_jobs(together: Together, jobs: int) -> tuple[NDArray[np.bool_], dict[tuple[int, int], set[int]]]:
    """[job, link]: does it use it; and for every (job, link) the links that its flows leave on behind it."""
    graph, routes = together.graph, together.routes
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    job_of_row = np.zeros(routes.pairs, np.int64)
    job_of_row[graph.route[transfer]] = together.job[transfer]  # a GPU belongs to one job, and so does a row
    job = np.repeat(job_of_row, routes.hops)
    uses = np.zeros((jobs, routes.fabric.links), bool)
    uses[job, routes.link] = True
    last = np.zeros(len(routes.link), bool)
    last[routes.link_start[1:] - 1] = True
    following: dict[tuple[int, int], set[int]] = {}
    inner = np.flatnonzero(~last)
    hops = zip(job[inner].tolist(), routes.link[inner].tolist(), routes.link[inner + 1].tolist(), strict=True)
    for number, link, behind in hops:
        following.setdefault((number, link), set()).add(behind)
    return uses, following


def _paused(uses: NDArray[np.bool_], following: dict[tuple[int, int], set[int]], pauses: Ints) -> Ints:
    found = np.zeros((len(uses), len(uses)), np.int64)
    for link in np.flatnonzero(pauses).tolist():
        for job in np.flatnonzero(uses[:, link]).tolist():
            ahead = [link, *following.get((job, link), ())]
            others = [other for other in np.flatnonzero(uses[:, ahead].any(axis=1)).tolist() if other != job]
            found[job, others or [job]] += pauses[link]
    return found
