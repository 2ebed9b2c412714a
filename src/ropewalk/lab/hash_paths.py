"""Which path the kernel's hash picks for a connection: it is asked at every node on the way.

The hash has a secret key, so nobody can compute it outside; but with the ports of a connection known before it is made,
`ip route get` answers for each node as the kernel will route.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ropewalk.errors import LabError
from ropewalk.lab.job import FIRST_PORT, PORT, Connection
from ropewalk.lab.lab import Lab
from ropewalk.lab.network import host_address, interface
from ropewalk.routing import Routes
from ropewalk.routing.routes import single_paths, starts

MOST_HOPS = 64


def paths_of_connections(lab: Lab, connections: Sequence[Connection]) -> Routes:
    """The routes of all connections, of which there is one for each pair of hosts."""
    links: list[list[int]] = [[] for _ in connections]
    at = {number: one.src for number, one in enumerate(connections)}
    for _ in range(MOST_HOPS):
        at = {number: node for number, node in at.items() if node != connections[number].dst}
        if not at:
            return _as_routes(lab, connections, links)
        for number, link in _next_links(lab, connections, at, links):
            links[number].append(link)
            at[number] = int(lab.network.fabric.link_dst[link])
    raise LabError("packets of the lab loop: take it down and up again")


def _as_routes(lab: Lab, connections: Sequence[Connection], links: list[list[int]]) -> Routes:
    """One path for each pair, in the order of pairs."""
    order = sorted(range(len(connections)), key=lambda number: (connections[number].src, connections[number].dst))
    src, dst = (np.array([getattr(connections[number], end) for number in order], np.int32) for end in ("src", "dst"))
    flat = np.array([link for number in order for link in links[number]], np.int32)
    return single_paths(lab.network.fabric, src, dst, starts([len(links[number]) for number in order]), flat)


def _next_links(
    lab: Lab, connections: Sequence[Connection], at: dict[int, int], links: list[list[int]]
) -> Iterator[tuple[int, int]]:
    """One hop further, for all connections at once."""
    here: dict[int, list[int]] = defaultdict(list)
    for number, node in at.items():
        here[node].append(number)
    asked = [(node, "ip", [_question(lab, connections, number, links) for number in here[node]]) for node in here]
    for (node, numbers), text in zip(here.items(), lab.process.ask(batches=asked), strict=True):
        devices = {
            interface(cable): lab.network.cables[cable].links[end] for cable, end in lab.network.ends_of_node[node]
        }
        for number, answer in zip(numbers, _answers(text), strict=True):
            yield number, devices[answer["dev"]]


def _question(lab: Lab, connections: Sequence[Connection], number: int, links: list[list[int]]) -> str:
    one = connections[number]
    came = ""
    if links[number]:
        cable, _ = lab.network.end_of_link[links[number][-1]]
        came = f" iif {interface(cable)}"
    ports = f"ipproto tcp sport {FIRST_PORT + number} dport {PORT}"
    return f"route get {host_address(one.dst)} from {host_address(one.src)}{came} {ports}"


def _answers(text: str) -> list[dict[str, Any]]:
    """A batch of questions prints one list after the other."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value[0])
        while at < len(text) and text[at].isspace():
            at += 1
    return found
