"""Whether every flow took the route it was given: the links on which its packets were seen beside those of its path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk.lab.forwarding import links_by_number
from ropewalk.lab.job import Connection
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import Caught
from ropewalk.routing import Routes

MOST_NAMED = 3


@dataclass(frozen=True)
class Strayed:
    """A flow that was seen on a link that is not on its path, or never seen on one that is."""

    src: str
    dst: str
    instead: tuple[str, ...]
    """Links off its path on which it was seen."""
    missing: tuple[str, ...]
    """Links of its path on which it was not."""

    def said(self) -> str:
        parts = [f"over {', '.join(self.instead)}"] if self.instead else []
        parts += [f"not over {', '.join(self.missing)}"] if self.missing else []
        return f"{self.src} to {self.dst} went {' and '.join(parts)}"


@dataclass(frozen=True)
class RoutesTaken:
    """What packets showed of the routes of all flows of a job."""

    flows: int
    packets: int
    """That were looked at, once on every link they took."""
    strayed: tuple[Strayed, ...]

    def said(self) -> str:
        """In a sentence.

        >>> RoutesTaken(12, 480, ()).said()
        'every flow took its route (12 flows, 480 packets inspected on their links)'
        """
        if not self.strayed:
            return f"every flow took its route ({self.flows} flows, {self.packets} packets inspected on their links)"
        some = "; ".join(one.said() for one in self.strayed[:MOST_NAMED])
        more = "" if len(self.strayed) <= MOST_NAMED else f"; and {len(self.strayed) - MOST_NAMED} more"
        return f"{len(self.strayed)} of {self.flows} flows did not take their route: {some}{more}"

    def as_json(self) -> dict[str, Any]:
        return {
            "flows": self.flows,
            "packets": self.packets,
            "every_flow_took_its_route": not self.strayed,
            "strayed": [
                {"src": one.src, "dst": one.dst, "instead": one.instead, "missing": one.missing} for one in self.strayed
            ],
        }


def routes_taken(
    network: LabNetwork, connections: Sequence[Connection], routes: Routes, caught: Sequence[Caught]
) -> RoutesTaken:
    """Compare the links on which each connection was seen with those of its path."""
    given, fabric = links_by_number(routes), network.fabric
    seen: dict[int, set[int]] = defaultdict(set)
    for connection, node, name, _ in caught:
        if 0 <= connection < len(connections) and (node, name) in network.link_of_end:
            seen[connection].add(network.link_of_end[node, name])
    strayed = []
    for number, one in enumerate(connections):
        path = set(given[one.src, one.dst, one.path])
        if seen[number] != path:
            instead, missing = (
                tuple(fabric.link_name(link) for link in sorted(links))
                for links in (seen[number] - path, path - seen[number])
            )
            strayed.append(Strayed(fabric.node_names[one.src], fabric.node_names[one.dst], instead, missing))
    return RoutesTaken(len(connections), sum(packets for *_, packets in caught), tuple(strayed))
