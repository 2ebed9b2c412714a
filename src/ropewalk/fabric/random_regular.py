"""The random regular graph: hosts wired to each other at random, an expander with short paths everywhere."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds

Cables = list[tuple[int, int]]


@dataclass(frozen=True)
class RandomRegular:
    """N hosts with `degree` neighbours each, chosen by the seed; connected, without parallel cables.

    Cables are sorted by their two hosts; cable i has links 2i (from the lower host) and 2i + 1.

    >>> RandomRegular(64, 4).build().links
    256
    """

    hosts: int
    degree: int
    seed: int = 0
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("random-regular")
        at_least(findings, 2, hosts=self.hosts)
        at_least(findings, 1, degree=self.degree)
        at_least(findings, 0, seed=self.seed)
        if not findings and self.degree >= self.hosts:
            findings.add(f"degree {self.degree} needs more than {self.hosts} hosts: give at most {self.hosts - 1}")
        elif not findings and self.degree == 1 and self.hosts > 2:
            findings.add(f"degree 1 does not connect {self.hosts} hosts: give 2 or more")
        elif not findings and self.hosts * self.degree % 2:
            findings.add(f"{self.hosts} hosts of degree {self.degree} have an odd number of cable ends: make one even")
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def expression(self) -> str:
        base = f"random-regular:{self.hosts},{self.degree}"
        return base if self.seed == 0 else f"{base},{self.seed}"

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        draft.add_hosts(numbered("h", self.hosts))
        ends = _cables(self.hosts, self.degree, self.seed)
        draft.add_links(ends[:, 0], ends[:, 1], self.bandwidth, self.latency)
        return draft.freeze(self)


def _cables(hosts: int, degree: int, seed: int) -> NDArray[np.int32]:
    """Sorted (low, high) pairs of a connected simple graph in which every host has `degree` of them."""
    # Only the raw stream of PCG64 is promised to be the same in every NumPy, so all choices are made from it.
    stream = np.random.PCG64(seed)
    if 2 * degree >= hosts:
        # A graph in which everybody knows at least half of the others is connected; its complement is the sparse one.
        absent = np.zeros((hosts, hosts), bool)
        sparse = np.array(_simple_pairing(hosts, hosts - 1 - degree, stream), np.int64).reshape(-1, 2)
        absent[sparse.min(axis=1), sparse.max(axis=1)] = True
        return np.argwhere(np.triu(~absent, 1)).astype(np.int32)
    cables = _joined(hosts, _simple_pairing(hosts, degree, stream), stream)
    return np.array(sorted((min(a, b), max(a, b)) for a, b in cables), np.int32)


def _simple_pairing(hosts: int, degree: int, stream: np.random.PCG64) -> Cables:
    """Pair all cable ends at random, then exchange ends with random other cables until no loop or double is left."""
    while True:
        ends = np.repeat(np.arange(hosts), degree)
        ends = ends[np.argsort(stream.random_raw(len(ends)), kind="stable")]
        cables: Cables = [(int(a), int(b)) for a, b in ends.reshape(-1, 2)]
        if _repaired(cables, stream):
            return cables


def _repaired(cables: Cables, stream: np.random.PCG64) -> bool:
    """Exchange ends in place until the cables are simple; False for the rare pairing that cannot be saved."""
    count: Counter[tuple[int, int]] = Counter(_key(a, b) for a, b in cables)
    draw = _numbers(stream, len(cables))
    bad = deque(i for i, (a, b) in enumerate(cables) if a == b or count[_key(a, b)] > 1)
    patience = 100 * len(bad) + 1000
    while bad and patience:
        patience -= 1
        i, j, flip = bad.popleft(), next(draw), next(draw) % 2
        a, b = cables[i]
        if a != b and count[_key(a, b)] == 1:
            continue  # its double has moved away in the meantime
        c, d = cables[j] if flip else cables[j][::-1]
        one, other = _key(a, d), _key(c, b)
        if i == j or a == d or c == b or one == other or count[one] or count[other]:
            bad.append(i)
            continue
        count.subtract([_key(a, b), _key(c, d)])
        count.update([one, other])
        cables[i], cables[j] = (a, d), (c, b)
    return not bad


def _joined(hosts: int, cables: Cables, stream: np.random.PCG64) -> Cables:
    """Exchange ends between cables of different parts until the graph is one part; degrees stay as they are."""
    draw = _numbers(stream, len(cables))
    while len(parts := _parts(hosts, cables)) > 1:
        part_of = {host: number for number, part in enumerate(parts) for host in part}
        i = next(draw)
        j = next(j for j in draw if part_of[cables[j][0]] != part_of[cables[i][0]])
        (a, b), (c, d) = cables[i], cables[j]
        cables[i], cables[j] = (a, d), (c, b)
    return cables


def _parts(hosts: int, cables: Cables) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in range(hosts)]
    for a, b in cables:
        neighbours[a].append(b)
        neighbours[b].append(a)
    seen = [False] * hosts
    parts = []
    for start in range(hosts):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for host in part:  # the list grows while it is walked
            for other in neighbours[host]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
        parts.append(part)
    return parts


def _numbers(stream: np.random.PCG64, below: int) -> Iterator[int]:
    while True:
        yield int(stream.random_raw()) % below


def _key(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)
