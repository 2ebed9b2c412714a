"""What a job does to the network: the flows of its iteration on their links, and how long they take alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import Choose, Network
from ropewalk.tenancy.rounds import patterns_of
from ropewalk.tenancy.work import Work


@dataclass(frozen=True, eq=False)
class Footprint:
    """Phases are patterns of rounds with all their repeats; flows of a phase run at the same time.

    A phase takes `max(floor_s, flow_s * flows on the fullest link)`: rounds end with a barrier, and flows on a link get
    equal parts of it.
    """

    work: Work
    exchange: NDArray[np.int64]
    """The exchange that a phase belongs to."""
    floor_s: NDArray[np.float64]
    """What NICs and the inside of servers take, whatever the network does."""
    flow_s: NDArray[np.float64]
    """What one flow takes alone on a cable between leaf and spine."""
    nic_flows: NDArray[np.int64]
    """Most flows that one NIC sends or receives at a time: a link with as many is not contended."""
    rounds: NDArray[np.float64]
    """Rounds that a phase stands for."""
    sent: float
    """Flows between servers in an iteration, counted in every round."""
    flow_start: NDArray[np.int64]
    """Flows of phase p that cross leafs and can be held up there: `up[flow_start[p]:flow_start[p + 1]]`."""
    up: NDArray[np.int32]
    down: NDArray[np.int32]

    @cached_property
    def links(self) -> NDArray[np.int32]:
        """Every link that it ever uses, once."""
        return np.unique(np.concatenate([self.up, self.down]))

    @cached_property
    def phase_of_flow(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.exchange)), np.diff(self.flow_start))

    @cached_property
    def _company(self) -> NDArray[np.int64]:
        """For every flow the flows of the same phase on the fuller of its two links, itself included."""
        counted = []
        for links in (self.up, self.down):
            key = self.phase_of_flow * np.int64(2**32) + links
            _, which, count = np.unique(key, return_inverse=True, return_counts=True)
            counted.append(count[which])
        return np.asarray(np.maximum(*counted), np.int64)

    @cached_property
    def alone_s(self) -> NDArray[np.float64]:
        """Seconds of every phase when nobody else is on the network: the job may still meet itself."""
        fullest = np.zeros(len(self.exchange), np.int64)
        np.maximum.at(fullest, self.phase_of_flow, self._company)
        return np.maximum(self.floor_s, self.flow_s * fullest)

    @cached_property
    def lasts(self) -> NDArray[np.float64]:
        """Which part of its round every flow runs when nobody else is there: flows on emptier links are done sooner."""
        phase = self.phase_of_flow
        return np.maximum(self.floor_s[phase], self.flow_s[phase] * self._company) / self.alone_s[phase]

    @cached_property
    def met_alone(self) -> float:
        """Flows of an iteration that share a link with others of the same job, beyond what their NIC shares anyway."""
        phase = self.phase_of_flow
        return float(self.rounds[phase[self._company > self.nic_flows[phase]]].sum())

    def iteration_s(self, phase_s: NDArray[np.float64]) -> float:
        """Seconds of an iteration whose phases take these."""
        took = np.bincount(self.exchange, phase_s, minlength=len(self.work.exchanges))
        overlap = np.array([exchange.overlap_s for exchange in self.work.exchanges])
        return self.work.compute_s + float(np.maximum(took - overlap, 0.0).sum())

    @cached_property
    def quiet_iteration_s(self) -> float:
        """On a network that never holds a flow up."""
        return self.iteration_s(self.floor_s)

    @cached_property
    def alone_iteration_s(self) -> float:
        """With this routing and nobody else."""
        return self.iteration_s(self.alone_s)

    def mean_load(self, links: int) -> NDArray[np.float64]:
        """Flows on every link, mean over an iteration."""
        weight = self.alone_s[self.phase_of_flow] / self.alone_iteration_s
        both, twice = np.concatenate([self.up, self.down]), np.concatenate([weight, weight])
        return np.bincount(both, twice, minlength=links).astype(np.float64)


def footprint_of(work: Work, allocation: Allocation, network: Network, choose: Choose) -> Footprint:
    """The flows of a job where it was placed, on the ways that the routing gives them now."""
    plant = network.plant
    gpus = np.array(allocation.gpus, np.int64)
    server, leaf = gpus // plant.gpus_per_server, np.array(allocation.leaf_of_gpu, np.int64)
    number, floor_s, flow_s, nic_flows, rounds, crossing = [], [], [], [], [], [0]
    ups, downs, sent = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0.0
    for which, exchange in enumerate(work.exchanges):
        if exchange.size_bytes == 0:
            continue
        for src, dst, pattern in patterns_of(
            exchange.collective, len(gpus), exchange.group, exchange.stride, leaf, server
        ):
            size, inside = exchange.size_bytes * pattern.share, server[src] == server[dst]
            nic, near = _most(src[~inside], dst[~inside]), _most(src[inside], dst[inside])
            cross = np.flatnonzero(leaf[src] != leaf[dst])
            up, down = choose(network, allocation, src[cross], dst[cross])
            ups.append(up[up >= 0])
            downs.append(down[up >= 0])
            number.append(which)
            floor_s.append(pattern.repeat * size * max(nic / plant.nic_bandwidth, near / plant.server_bandwidth))
            flow_s.append(pattern.repeat * size / plant.link_bandwidth)
            nic_flows.append(nic)
            rounds.append(pattern.repeat)
            crossing.append(len(ups[-1]))
            sent += pattern.repeat * float((~inside).sum())
    return Footprint(
        work=work,
        exchange=np.array(number, np.int64),
        floor_s=np.array(floor_s, np.float64),
        flow_s=np.array(flow_s, np.float64),
        nic_flows=np.array(nic_flows, np.int64),
        rounds=np.array(rounds, np.float64),
        sent=sent,
        flow_start=np.cumsum(crossing).astype(np.int64),
        up=np.concatenate(ups),
        down=np.concatenate(downs),
    )


def _most(src: NDArray[np.int64], dst: NDArray[np.int64]) -> int:
    """Most flows that one rank sends, or receives, at a time."""
    return int(max(np.bincount(src).max(), np.bincount(dst).max())) if len(src) else 0
