"""Clusters with one slow part, and what pairs and groups of their GPUs would measure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ropewalk.collectives.nccl import library_for
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.components import Component, components_of
from ropewalk.expect.diagnosis import Diagnosis, diagnosed
from ropewalk.expect.prices import CollectivePrices
from ropewalk.expect.read.who import Groups, Measurement
from ropewalk.expect.series import series_of
from ropewalk.hardware import Cluster, Given, read_cluster

CLUSTERS = (
    ("dgx-h100:2", Given()),
    ("dgx-h100:4", Given()),
    ("4x4", Given(device="a100", nics=2)),
    ("8x1", Given(device="a100", network="leaf-spine:4x2x2")),
    ("16x1", Given(device="a100", network="fat-tree:4")),
    ("6x2", Given(device="h200", network="leaf-spine:2to1")),
)
SIZE = 1 << 28


@dataclass(frozen=True)
class Case:
    cluster: Cluster
    guilty: Component
    speed: float
    measured: tuple[Measurement, ...]

    @property
    def said(self) -> str:
        return f"{self.cluster.said}, {self.guilty.said} at {self.speed:.0%}, {len(self.measured)} measurements"

    def diagnosis(self) -> Diagnosis:
        prices = CollectivePrices(self.cluster, library_for(self.cluster))
        return diagnosed(series_of(self.measured, prices), prices)


def random_case(random: np.random.Generator, noise: float = 0.04, deviation: float = 0.08) -> Case:
    """A cluster with one part at 10 to 70 % of its speed, that some measurement passes."""
    name, given = CLUSTERS[random.integers(len(CLUSTERS))]
    cluster = read_cluster(name, given)
    prices = CollectivePrices(cluster, library_for(cluster))
    asked = questions(prices, random)
    prices.prepare((BENCHMARKS[one], groups) for one, groups in asked)
    load = np.stack([prices.expected(BENCHMARKS[one], SIZE, groups).wired.load for one, groups in asked]).max(axis=0)
    parts = [part for part in components_of(prices.fabric) if load[list(part.links)].max() > 0]
    kind = random.choice(sorted({part.kind for part in parts}))
    alike = [part for part in parts if part.kind == kind]
    guilty = alike[random.integers(len(alike))]
    speed = float(random.uniform(0.1, 0.7))
    return Case(cluster, guilty, speed, measured(prices, asked, guilty, speed, random, noise, deviation))


def questions(prices: CollectivePrices, random: np.random.Generator) -> list[tuple[str, Groups]]:
    """Pairs as a check of all links would take them: neighbours, the same GPU of the next server, some at random."""
    gpus, server = prices.fabric.hosts, prices.server
    size = int(np.bincount(server).max())
    found: dict[tuple[str, Groups], None] = {}
    for one in range(gpus):
        inside = np.flatnonzero(server == server[one])
        others = [int(inside[(np.flatnonzero(inside == one)[0] + 1) % len(inside)]), (one + size) % gpus]
        others += random.integers(gpus, size=3).tolist()
        for other in others:
            if other != one:
                found["sendrecv" if random.random() < 0.5 else "send", ((one, other),)] = None
    found["all_reduce", prices.everyone] = None
    return list(found)


def measured(
    prices: CollectivePrices, asked: list[tuple[str, Groups]], guilty: Component | None, speed: float,
    random: np.random.Generator, noise: float, deviation: float,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Times on the network with a slow part; the library chooses as if nothing were slow."""
    slowed = CollectivePrices(prices.cluster, prices.library)
    if guilty is not None:
        bandwidth = prices.fabric.bandwidth.copy()
        bandwidth[list(guilty.links)] *= speed
        slowed.fabric = replace(prices.fabric, bandwidth=bandwidth)
    kinds = dict.fromkeys((name, prices.server[groups[0][0]] == prices.server[groups[0][-1]]) for name, groups in asked)
    off = {kind: float(random.uniform(-deviation, deviation)) for kind in kinds}
    found = []
    for some in (prices, slowed):
        some.prepare((BENCHMARKS[name], groups) for name, groups in asked)
    for name, groups in asked:
        usual = prices.expected(BENCHMARKS[name], SIZE, groups)
        slope = slowed.wired(BENCHMARKS[name], groups, usual.run.algorithm).seconds_per_byte
        kind = name, prices.server[groups[0][0]] == prices.server[groups[0][-1]]
        seconds = usual.latency_s + max(usual.bytes_s, SIZE * slope * usual.stretch)
        seconds *= float(np.exp(random.normal(0, noise) + off[kind]))
        found.append(Measurement(name, SIZE, seconds, groups, "simulated"))
    return tuple(found)
