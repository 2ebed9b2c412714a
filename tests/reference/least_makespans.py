"""A time that no schedule of transfers can beat, however links are shared.

A transfer is never there before all it waits for, its start-up, the latency of its shortest path and its bytes at the
rate of each link alone. A link that carries several transfers carries all their bytes: nothing before the first of
them can be at the link, and after its last byte at least one of them has the rest of its path, and whatever waits
for that, still to go. Packets, fluid with any shares, priorities: all of them stay above the longest of these times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.routing import Routes
from ropewalk.task import TaskGraph


@dataclass(frozen=True)
class _Use:
    """What a transfer has to do with a link: seconds of it, and latency before and from it on its shortest path."""

    link: int
    seconds: float
    before: float
    after: float


def least_makespan(graph: TaskGraph, routes: Routes, payload_share: float = 1.0) -> float:
    """Seconds that a graph of transfers takes at least; `payload_share` of what links carry is payload."""
    uses = [_uses(graph, routes, task, payload_share) for task in range(graph.tasks)]
    quiet = [_quiet(graph, task, uses[task]) for task in range(graph.tasks)]
    waits = [graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]].tolist() for task in range(graph.tasks)]
    ready, behind = np.zeros(graph.tasks), np.zeros(graph.tasks)
    for task in range(graph.tasks):
        ready[task] = max((ready[wait] + quiet[wait] for wait in waits[task]), default=0.0)
    for task in reversed(range(graph.tasks)):
        for wait in waits[task]:
            behind[wait] = max(behind[wait], quiet[task] + behind[task])
    least = float(max(ready + quiet + behind))
    ready += graph.start_up
    for link in {use.link for of_task in uses for use in of_task}:
        here = [(task, use) for task, of_task in enumerate(uses) for use in of_task if use.link == link]
        first = min(ready[task] + use.before for task, use in here)
        rest = min(use.after + behind[task] for task, use in here)
        least = max(least, first + sum(use.seconds for _, use in here) + rest)
    return least


def _quiet(graph: TaskGraph, task: int, uses: list[_Use]) -> float:
    """Start-up, latency and bytes of a transfer that has all links to itself."""
    return float(graph.start_up[task]) + max(use.seconds + use.before + use.after for use in uses)


def _uses(graph: TaskGraph, routes: Routes, task: int, payload_share: float) -> list[_Use]:
    """The links of a transfer; where paths differ, the least latency of those that have the link."""
    pair = int(routes.find([graph.place[task]], [graph.peer[task]])[0])
    found: dict[int, _Use] = {}
    for path in range(routes.path_start[pair], routes.path_start[pair + 1]):
        links = routes.link[routes.link_start[path] : routes.link_start[path + 1]]
        latency = routes.fabric.latency[links]
        bytes_here = float(graph.amount[task] * routes.share[path]) / payload_share
        for place, link in enumerate(links.tolist()):
            had = found.get(link, _Use(link, 0.0, np.inf, np.inf))
            found[link] = _Use(
                link,
                had.seconds + bytes_here / float(routes.fabric.bandwidth[link]),
                min(had.before, float(latency[:place].sum())),
                min(had.after, float(latency[place:].sum())),
            )
    return list(found.values())
