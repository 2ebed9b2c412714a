"""A real network with one slow link, and whether `ropewalk expect` names it.

Eight hosts on four leafs under one spine, all of them network namespaces of the kernel, every direction of every cable
a token bucket of 50 Mbit/s. One link or cable is slowed, pairs of hosts send to each other over TCP, one
pair at a time, and their times are read as a table of pairs. Needs root and iproute2; about 8 s per case:

    python recipes/guilty_link.py [cases] [seed]
"""

from __future__ import annotations

import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ropewalk.errors import DeviceError
from ropewalk.expect.components import Component, components_of
from ropewalk.expect.diagnosis import Diagnosis
from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.study import answer
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.lab.forwarding import hashed
from ropewalk.lab.lab import Lab, built
from ropewalk.lab.namespaces import Namespace
from ropewalk.lab.network import LabNetwork

LEAFS, HOSTS_OF_LEAF = 4, 2
HOSTS = LEAFS * HOSTS_OF_LEAF
BITS_PER_SECOND = 50e6
SENT_BYTES = 750_000
PORT = 5055
LONGEST_S = 300.0
SENDS, AGREE = (2, 12), 0.03
"""A pair sends at least and at most so many times, until its two fastest sends differ by no more than this part."""


def cluster() -> Cluster:
    """What is built below, in the words of every command."""
    network = f"leaf-spine:{LEAFS}x1x{HOSTS_OF_LEAF}"
    given = Given(device="a100", network=network, nic_bandwidth=BITS_PER_SECOND / 8)
    return read_cluster(f"{HOSTS}x1", given)


@contextmanager
def slowed(lab: Lab, links: Sequence[int], speed: float) -> Iterator[None]:
    """Some links of the lab at a part of their speed."""
    own = {link: lab.network.rate_bits(link) for link in links}
    lab.set_rates({link: round(bits * speed) for link, bits in own.items()})
    try:
        yield
    finally:
        lab.set_rates(own)


def _serve(listening: socket.socket) -> None:
    """Take what is sent and say so, connection by connection."""
    while True:
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(LONGEST_S)
            left = int.from_bytes(taken.recv(8), "big")
            while left > 0 and (part := taken.recv(1 << 16)):
                left -= len(part)
            taken.sendall(b"!")


def _host(place: Namespace, orders: Connection) -> None:
    """A host: receives whatever comes, and sends as it is told until it is told nothing more."""
    place.enter()
    listening = socket.create_server((place.address, PORT), backlog=64)
    threading.Thread(target=_serve, args=(listening,), daemon=True).start()
    orders.send("ready")
    for address, size in iter(orders.recv, None):
        with socket.create_connection((address, PORT), timeout=LONGEST_S) as made:
            began = time.perf_counter()
            made.sendall(size.to_bytes(8, "big") + bytes(size))
            made.recv(1)
            orders.send(time.perf_counter() - began)


@contextmanager
def hosts_of(lab: Lab) -> Iterator[list[Connection]]:
    """A process in every namespace, and the line to each."""
    context, lines, running = multiprocessing.get_context("fork"), [], []
    try:
        for place in map(lab.namespace, range(HOSTS)):
            mine, theirs = context.Pipe()
            process = context.Process(target=_host, args=(place, theirs), daemon=True)
            process.start()
            running.append(process)
            lines.append(mine)
        for line in lines:
            _heard(line)
        yield lines
    finally:
        for process in running:
            process.terminate()
            process.join(5)


def _heard(line: Connection) -> object:
    if not line.poll(2 * LONGEST_S):
        raise DeviceError("a host of the network does not answer: is the machine too busy?")
    return line.recv()


def pairs() -> list[tuple[int, int]]:
    """Both directions with the neighbour on the leaf, one with a host of the next leaf, one with a host two further."""
    found = [(host, host ^ 1) for host in range(HOSTS)]
    found += [(host, (host + 2) % HOSTS) for host in range(HOSTS)]
    return found + [((host + 4) % HOSTS, host) for host in range(HOSTS)]


def measured(lab: Lab, lines: list[Connection]) -> str:
    """The table of pairs, one pair at a time: the fastest send of each, as no link is faster than it is."""
    rows = ["ranks,collective,size,time"]
    for src, dst in pairs():
        taken: list[float] = []
        while len(taken) < SENDS[0] or (len(taken) < SENDS[1] and taken[1] > taken[0] * (1 + AGREE)):
            lines[src].send((lab.namespace(dst).address, SENT_BYTES))
            taken = sorted([*taken, float(str(_heard(lines[src])))])
        rows.append(f"h{src} h{dst},send,{SENT_BYTES}B,{taken[0]:.6f}s")
    return "\n".join(rows)


@dataclass(frozen=True)
class Case:
    guilty: Component
    speed: float
    found: Diagnosis

    @property
    def named(self) -> bool:
        """Is it the first answer, alone or with what no measurement tells from it?"""
        return self.found.best is not None and self.guilty.name in self.found.best.names

    @property
    def said(self) -> str:
        first = "nothing" if self.found.best is None else f"{self.found.best.said} at {self.found.best.speed or 1:.0%}"
        return f"{self.guilty.said} at {self.speed:.0%}: {'named' if self.named else 'missed'} ({first})"


def one_slow_link_of_leaf_spine_4x1x2(cases: int = 10, seed: int = 0) -> Iterator[Case]:
    """So many cases on one network, each with another link or cable at 20 to 60 % of its speed."""
    random, place = np.random.default_rng(seed), cluster()
    parts = [part for part in components_of(place.fabric()) if part.kind in ("cable", "link")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        network = LabNetwork(place.fabric())
        lab = stack.enter_context(built(network, hashed(network.fabric)))
        lines = stack.enter_context(hosts_of(lab))
        for _ in range(cases):
            guilty, speed = parts[random.integers(len(parts))], float(random.uniform(0.2, 0.6))
            with slowed(lab, guilty.links, speed):
                table = measured(lab, lines)
            (folder / "pairs.csv").write_text(table)
            found = answer(ExpectQuestion(place, files=(folder / "pairs.csv",))).diagnosis
            assert found is not None
            yield Case(guilty, speed, found)


def main() -> None:
    cases, seed = (*map(int, sys.argv[1:]), *(10, 0)[len(sys.argv) - 1 :])[:2]
    named = 0
    for case in one_slow_link_of_leaf_spine_4x1x2(cases, seed):
        named += case.named
        print(case.said, flush=True)
    print(f"named in {named} of {cases} cases")


if __name__ == "__main__":
    main()
