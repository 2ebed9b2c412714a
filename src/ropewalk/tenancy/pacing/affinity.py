"""CASSINI's affinity graph: one shift in time for every job, though it shares links with different others.

The graph has jobs on one side, shared links on the other, and on every edge the shift that the job needs on that link.
Shifts against each other are all that counts on a link, so walking through a graph without loops gives every job one
shift that suits all its links: t_k = t_j - t_jl + t_kl. CASSINI passes placements over whose graph has loops; here,
where jobs stand where they stand, links are added as long as they close no loop, those first that gain most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Shifts = Mapping[int, int]
"""Job -> steps that it is shifted by."""


@dataclass(frozen=True)
class SharedLink:
    """Jobs on a link (or on several that the same jobs share alike), and how they should take turns there."""

    turns: Shifts
    gain: float
    """How much better the score is than of jobs that are not in step."""


@dataclass(frozen=True)
class Affinity:
    """One shift for every job that takes turns with others."""

    shift: Shifts
    group: Mapping[int, int]
    """Job -> number of those that it is in step with."""
    left_out: int
    """Links that would close a loop."""


def affinity(links: Sequence[SharedLink], period: Mapping[int, int]) -> Affinity:
    """Shifts in steps, each below its job's `period`.

    >>> two = [SharedLink({0: 0, 1: 3}, 0.5), SharedLink({1: 0, 2: 4}, 0.4)]
    >>> dict(affinity(two, {0: 10, 1: 10, 2: 10}).shift)
    {0: 0, 1: 3, 2: 7}
    """
    kept, left_out = _without_loops(links)
    of_job: dict[int, list[SharedLink]] = {}
    for link in kept:
        for job in link.turns:
            of_job.setdefault(job, []).append(link)
    shift: dict[int, int] = {}
    group: dict[int, int] = {}
    for number, root in enumerate(sorted(of_job)):
        if root in shift:
            continue
        shift[root], group[root], walk = 0, number, [root]
        while walk:
            job = walk.pop()
            for link in of_job[job]:
                for other, turn in link.turns.items():
                    if other not in shift:
                        shift[other] = (shift[job] - link.turns[job] + turn) % period[other]
                        group[other] = number
                        walk.append(other)
    return Affinity(shift, group, left_out)


def _without_loops(links: Sequence[SharedLink]) -> tuple[list[SharedLink], int]:
    """Links that close no loop, those that gain most first."""
    head: dict[int, int] = {}

    def top(job: int) -> int:
        while head.setdefault(job, job) != job:
            job = head[job]
        return job

    kept = []
    for link in sorted(links, key=lambda one: (-one.gain, sorted(one.turns))):
        tops = [top(job) for job in link.turns]
        if len(set(tops)) == len(tops):
            kept.append(link)
            for other in tops[1:]:
                head[other] = tops[0]
    return kept, len(links) - len(kept)
