"""Fabrics to compute optima on: those with published or independently computed answers, and small random ones."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ropewalk.fabric import Fabric, FabricDraft

_DATA = Path(__file__).parent.parent / "data"

Link = tuple[int, int, Fraction]


def known_fabrics() -> list[dict[str, Any]]:
    """Fabrics with exact optima: cut enumeration, a public synthesiser's search and separate linear programs agree."""
    read: list[dict[str, Any]] = json.loads((_DATA / "collective_optimum.json").read_text())
    return read


def known_rates() -> dict[str, list[dict[str, Any]]]:
    """All-reduce rates of small fabrics by a separate linear program over every root's in- and out-trees."""
    read: dict[str, list[dict[str, Any]]] = json.loads((_DATA / "allreduce_rates.json").read_text())
    return read


def fabric_of(hosts: int, switches: int, links: list[Link], name: str = "small") -> Fabric:
    """A fabric of one-way links between nodes, hosts first."""
    draft = FabricDraft(name)
    draft.add_hosts([f"h{host}" for host in range(hosts)])
    draft.add_switches([f"s{switch}" for switch in range(switches)], 1)
    tail, head, speed = zip(*links, strict=True)
    draft.add_links(list(tail), list(head), [float(value) for value in speed], duplex=False)
    return draft.freeze()


def both_ways(links: list[Any]) -> list[Link]:
    return [link for u, v, speed in links for link in ((u, v, Fraction(speed)), (v, u, Fraction(speed)))]


def known_fabric(known: dict[str, Any]) -> Fabric:
    """The fabric of a vector; what is not a member of the group becomes a switch."""
    order = [*known["compute"], *sorted(set(range(known["vertices"])) - set(known["compute"]))]
    place = {vertex: at for at, vertex in enumerate(order)}
    links = both_ways(known["duplex"]) + [(u, v, Fraction(speed)) for u, v, speed in known["one_way"]]
    moved = [(place[u], place[v], speed) for u, v, speed in links]
    members = len(known["compute"])
    return fabric_of(members, known["vertices"] - members, moved, known["name"])


@st.composite
def small_fabrics(
    draw: st.DrawFn, *, alike: bool = False, most_hosts: int = 5, most_switches: int = 2
) -> tuple[int, int, list[Link]]:
    """Hosts, switches and links; `alike` links are equal both ways. A cycle keeps everything connected."""
    hosts = draw(st.integers(2, most_hosts))
    switches = draw(st.integers(0, most_switches))
    nodes = hosts + switches
    speeds = st.integers(1, 9).map(Fraction)
    cycle = draw(st.permutations(range(nodes)))
    ends = [(cycle[at], cycle[(at + 1) % nodes]) for at in range(nodes)]
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    ends += draw(st.lists(pairs, max_size=6))
    links = [(u, v, draw(speeds)) for u, v in ends]
    return hosts, switches, both_ways(links) if alike else links
