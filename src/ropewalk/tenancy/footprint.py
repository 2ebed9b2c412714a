"""What a job does to the network: the flows of its iteration on their links, and how long they take alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import Choose, SwitchNetwork, hops_of
from ropewalk.tenancy.relays import relayed
from ropewalk.tenancy.rounds import patterns_of
from ropewalk.tenancy.work import Iteration

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Footprint:
    """Phases are patterns of rounds with all their repeats; flows of a phase run at the same time.

    A phase takes `max(floor_s, flow_s * load of the fullest link)`: rounds end with a barrier, and flows on a link get
    equal parts of it. A flow loads a link by 1 where it sends as much as most of its phase over one cable.
    """

    work: Iteration
    exchange: NDArray[np.int64]
    """The exchange that a phase belongs to; -1 for computing between two exchanges."""
    floor_s: NDArray[np.float64]
    """What NICs and the inside of servers take, whatever the network does."""
    flow_s: NDArray[np.float64]
    """What one flow takes alone on a cable between leaf and spine."""
    nic_flows: NDArray[np.float64]
    """The load of the fullest NIC: a link with as much is not contended."""
    rounds: NDArray[np.float64]
    """Rounds that a phase stands for."""
    sent: float
    """Flows between servers in an iteration, counted in every round."""
    flow_start: NDArray[np.int64]
    """Flows of phase p that cross leafs and can be held up there: `path[flow_start[p]:flow_start[p + 1]]`."""
    path: NDArray[np.int32]
    """[flow, hop]: the links of a flow; -1 where there are no more."""
    share: NDArray[np.float64]
    """[flow, hop]: how much it loads each of them; 0 where there are no more."""
    gpus: int = 1
    """Of the job."""
    wired_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """What phases take on cables that were patched for the job, where it has such."""

    @cached_property
    def links(self) -> NDArray[np.int32]:
        """Every link that it ever uses, once."""
        return np.unique(self.path[self.path >= 0])

    @cached_property
    def phase_of_flow(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.exchange)), np.diff(self.flow_start))

    @cached_property
    def _company(self) -> NDArray[np.float64]:
        """For every flow what its phase puts on the fullest of its links, itself included."""
        key = self.phase_of_flow[:, None] * np.int64(2**32) + self.path
        _, which = np.unique(key, return_inverse=True)
        which = which.reshape(key.shape)
        load = np.bincount(which.ravel(), self.share.ravel(), minlength=1)
        return np.asarray(load[which].max(axis=1, initial=0.0), np.float64)

    @cached_property
    def alone_s(self) -> NDArray[np.float64]:
        """Seconds of every phase when nobody else is on the network: the job may still meet itself."""
        fullest = np.zeros(len(self.exchange))
        np.maximum.at(fullest, self.phase_of_flow, self._company)
        network_s = np.maximum(self.floor_s, self.flow_s * fullest)
        return np.maximum(network_s, self.wired_s) if len(self.wired_s) else network_s

    @cached_property
    def lasts(self) -> NDArray[np.float64]:
        """Which part of its round every flow runs when nobody else is there: flows on emptier links are done sooner."""
        phase = self.phase_of_flow
        return np.maximum(self.floor_s[phase], self.flow_s[phase] * self._company) / self.alone_s[phase]

    @cached_property
    def wanted(self) -> NDArray[np.float64]:
        """Part of its iteration that each of its `links` takes to carry its bytes."""
        there = self.path >= 0
        seconds = (self.flow_s[self.phase_of_flow][:, None] * self.share)[there]
        place = np.searchsorted(self.links, self.path[there])
        return np.asarray(np.bincount(place, seconds / self.alone_iteration_s, minlength=len(self.links)), np.float64)

    @cached_property
    def _hops_by_link(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """(where the hops over each of `links` begin, the phase of every hop, its share), flows in order."""
        there = self.path >= 0
        link = self.path[there]
        order = np.argsort(link, kind="stable")
        phase = np.broadcast_to(self.phase_of_flow[:, None], self.path.shape)[there]
        begin = np.append(np.searchsorted(link[order], self.links), len(link))
        return begin.astype(np.int64), phase[order], self.share[there][order]

    def load_in_phases(self, link: int) -> NDArray[np.float64]:
        """What every phase puts on one of its `links`."""
        begin, phase, share = self._hops_by_link
        at = int(np.searchsorted(self.links, link))
        hops = slice(begin[at], begin[at + 1])
        return np.asarray(np.bincount(phase[hops], share[hops], minlength=len(self.exchange)), np.float64)

    @cached_property
    def busiest_link_s(self) -> float:
        """Seconds that its bytes of an iteration take on the link where they take longest."""
        there = self.path >= 0
        seconds = (self.flow_s[self.phase_of_flow][:, None] * self.share)[there]
        return float(np.bincount(self.path[there], seconds, minlength=1).max())

    @cached_property
    def worth(self) -> float:
        """GPU-seconds of computing for every second of communication, whatever its paths are."""
        sends = float(self.floor_s[self.exchange >= 0].sum())
        return self.gpus * self.work.arithmetic_s / sends if sends else np.inf

    @cached_property
    def met_alone(self) -> float:
        """Flows of an iteration that share a link with others of the same job, beyond what their NIC shares anyway."""
        phase = self.phase_of_flow
        return float(self.rounds[phase[self._company > self.nic_flows[phase] * (1 + ROUNDING)]].sum())

    def iteration_s(self, phase_s: NDArray[np.float64]) -> float:
        """Seconds of an iteration whose phases take these."""
        sends = self.exchange >= 0
        took = np.bincount(self.exchange[sends], phase_s[sends], minlength=len(self.work.exchanges))
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

    @cached_property
    def mean_load(self) -> NDArray[np.float64]:
        """Load of each of its `links`, mean over an iteration."""
        weight = self.alone_s[self.phase_of_flow] / self.alone_iteration_s
        there = self.path >= 0
        place = np.searchsorted(self.links, self.path[there])
        load = np.bincount(place, (weight[:, None] * self.share)[there], minlength=len(self.links))
        return np.asarray(load, np.float64)


def footprint_of(work: Iteration, allocation: Allocation, network: SwitchNetwork, choose: Choose) -> Footprint:
    """The flows of a job where it was placed, on the ways that the routing gives them now."""
    plant = network.plant
    gpus = np.array(allocation.gpus, np.int64)
    server, leaf = gpus // plant.gpus_per_server, np.array(allocation.leaf_of_gpu, np.int64)
    number: list[int] = []
    floor_s: list[float] = []
    flow_s: list[float] = []
    nic_flows: list[float] = []
    rounds: list[float] = []
    crossing = [0]
    none = (0, hops_of(plant))
    paths, shares, sent = [np.zeros(none, np.int32)], [np.zeros(none)], 0.0
    for which, exchange in enumerate(work.exchanges):
        if exchange.after_s:
            number.append(-1)
            for column, value in ((floor_s, exchange.after_s), (flow_s, 0.0), (nic_flows, 0.0), (rounds, 1.0)):
                column.append(value)
            crossing.append(0)
        if exchange.size_bytes == 0:
            continue
        for src, dst, pattern in patterns_of(exchange, len(gpus), leaf // plant.rails, server):
            size, inside = exchange.size_bytes * pattern.share, server[src] == server[dst]
            weight = pattern.weights(len(src))
            enter, leave = relayed(gpus, plant.rails, src, dst)
            nic = _most(enter[~inside], leave[~inside], weight[~inside])
            near = _most_inside(src, enter, leave, dst, weight, inside)
            cross = np.flatnonzero((leaf[enter] != leaf[leave]) & ~inside)
            path = choose(network, allocation, enter[cross], leave[cross])
            held = path[:, 0] >= 0
            paths.append(path[held])
            shares.append(network.share(path, weight[cross])[held])
            number.append(which)
            floor_s.append(pattern.repeat * size * max(nic / plant.nic_bandwidth, near / plant.server_bandwidth))
            flow_s.append(pattern.repeat * size / plant.link_bandwidth)
            nic_flows.append(nic)
            rounds.append(pattern.repeat)
            crossing.append(len(paths[-1]))
            sent += pattern.repeat * float((~inside).sum())
    return Footprint(
        work=work,
        exchange=np.array(number, np.int64),
        floor_s=np.array(floor_s, np.float64),
        flow_s=np.array(flow_s, np.float64),
        nic_flows=np.array(nic_flows, np.float64),
        rounds=np.array(rounds, np.float64),
        sent=sent,
        flow_start=np.cumsum(crossing).astype(np.int64),
        path=np.concatenate(paths),
        share=np.concatenate(shares),
        gpus=len(gpus),
    )


def _most_inside(
    src: NDArray[np.int64],
    enter: NDArray[np.int64],
    leave: NDArray[np.int64],
    dst: NDArray[np.int64],
    weight: NDArray[np.float64],
    inside: NDArray[np.bool_],
) -> float:
    """Most that one rank sends, or receives, inside its server: to its neighbours, and what is handed over to rails."""
    hops = ((src, dst, inside), (src, enter, src != enter), (leave, dst, leave != dst))
    ends = ((one[mine], two[mine], weight[mine]) for one, two, mine in hops)
    return _most(*(np.concatenate(column) for column in zip(*ends, strict=True)))


def _most(src: NDArray[np.int64], dst: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """Most that one rank sends, or receives, at a time."""
    return float(max(np.bincount(src, weight).max(), np.bincount(dst, weight).max())) if len(src) else 0.0
