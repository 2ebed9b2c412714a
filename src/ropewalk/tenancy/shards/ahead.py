"""Patching ahead: while jobs run on one panel, the shards of those that wait are patched on the other.

A server has two panels for each port, so one further topology can wait behind it. Jobs in line are promised servers in
their order: idle ones, then those that are expected to be free first. A job that gets the servers it was promised
starts as soon as its fibres are in place and its ports have changed panels; whoever gets others, or did not wait, is
patched when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.shards.allocate import SHARD, on_servers, servers_of
from ropewalk.tenancy.shards.plant import LOOK_AHEAD, PanelPlant

DEPTH = 100
"""Waiting jobs that are looked at, from the head on."""


@dataclass(frozen=True)
class Promise:
    """Servers that a waiting job is patched for."""

    servers: tuple[int, ...]
    ready_s: float
    """When its last fibre is in place."""


@dataclass
class Patching:
    """What was patched in a replay."""

    shards: int = 0
    """Starts of jobs over several servers."""
    ahead: int = 0
    """Of these the ones that found their cables in place, and only changed panels."""
    cables: int = 0
    """Fibres of the topologies that jobs started on."""
    waited_s: float = 0.0
    """Seconds that jobs stood on their servers and waited for cables, all jobs together."""
    waited_gpu_s: float = 0.0
    """The same for each of their GPUs."""
    orders: int = 0
    """Times that the robots were sent, ahead and at starts."""
    in_vain: int = 0
    """Of these the ones ahead for jobs that then got other servers."""
    patch_s: float = 0.0
    """What one order takes."""

    @property
    def robot_s(self) -> float:
        """Time that robots worked, if they do one shard after the other."""
        return self.orders * self.patch_s

    def as_document(self) -> dict[str, float]:
        """Plain numbers, for JSON."""
        return {**vars(self), "robot_s": self.robot_s}


@dataclass(frozen=True)
class InLine:
    """A waiting job."""

    name: str
    gpus: int


@dataclass
class Panels:
    """Which shards wait behind which servers."""

    plant: PanelPlant
    promises: dict[str, Promise] = field(default_factory=dict)
    done: Patching = field(default_factory=Patching)

    def __post_init__(self) -> None:
        self.done.patch_s = self.plant.patch_s

    def seat(self, state: Occupancy, held: Allocation) -> Allocation:
        """The job on the servers that it was promised, if all are idle; else off those of others if possible."""
        own = self.promises.get(held.job)
        idle = np.flatnonzero(state.free_in_server == self.plant.gpus_per_server)
        if own is not None and held.stage == SHARD and np.isin(own.servers, idle).all():
            return on_servers(state, held, own.servers)
        got = servers_of(self.plant, held)
        taken = {server for job, promise in self.promises.items() if job != held.job for server in promise.servers}
        if taken.isdisjoint(got):
            return held
        island = self.plant.island_of_server
        if held.stage == SHARD:
            fits = idle[island[idle] == island[got[0]]]
        else:
            fits = np.flatnonzero(state.free_in_server >= held.size)
        free = sorted(
            fits.tolist(),
            key=lambda server: (server in taken, int(state.free_in_server[server]), server not in got, server),
        )
        return on_servers(state, held, sorted(free[: len(got)]))

    def start(self, held: Allocation, cables: int, now_s: float) -> float:
        """A job starts; answers how long it waits for its cables."""
        own = self.promises.pop(held.job, None)
        if held.stage != SHARD or not cables:
            self.done.in_vain += own is not None
            return 0.0
        if own is not None and own.servers == servers_of(self.plant, held):
            wait_s = max(own.ready_s - now_s, 0.0)
            self.done.ahead += own.ready_s <= now_s
        else:
            self.done.in_vain += own is not None
            self.done.orders += 1
            wait_s = self.plant.patch_s
        wait_s += self.plant.flip_s if self.plant.panels == LOOK_AHEAD else 0.0
        self.done.shards += 1
        self.done.cables += cables
        self.done.waited_s += wait_s
        self.done.waited_gpu_s += wait_s * held.size
        return wait_s

    def look_ahead(self, now_s: float, line: Sequence[InLine], free_s: NDArray[np.float64]) -> None:
        """Promise servers to jobs in line; `free_s` is when each server is expected to be free.

        A promise stands unless others are expected to be free sooner by more than patching takes.
        """
        if self.plant.panels < LOOK_AHEAD:
            return
        for gone in sorted(set(self.promises) - {job.name for job in line}):
            del self.promises[gone]
            self.done.in_vain += 1
        left = np.lexsort((np.arange(len(free_s)), free_s))
        left = left[np.isfinite(free_s[left])]
        for job in line[:DEPTH]:
            servers = -(-job.gpus // self.plant.gpus_per_server)
            if servers == 1:
                # Few GPUs find room beside others; many take a server, and no cables.
                left = left[1:] if 2 * job.gpus > self.plant.gpus_per_server else left
                continue
            first = self._first_free(left, free_s, servers)
            if len(first) < servers:
                break
            own = self.promises.get(job.name)
            if own is None or not np.isin(own.servers, left).all() or _later(free_s, own, first) > self.plant.patch_s:
                self._promise(job.name, sorted(first.tolist()), now_s)
            left = left[~np.isin(left, self.promises[job.name].servers)]

    def _first_free(self, left: NDArray[np.int64], free_s: NDArray[np.float64], servers: int) -> NDArray[np.int64]:
        """So many servers behind the same panels that are free first, of those left over; fewer where there are not."""
        if self.plant.islands == 1:
            return left[:servers]
        island = self.plant.island_of_server[left]
        each = [left[island == number][:servers] for number in range(self.plant.islands)]
        return min(each, key=lambda some: free_s[some[-1]] if len(some) == servers else np.inf)

    def _promise(self, job: str, servers: Sequence[int], now_s: float) -> None:
        self.done.in_vain += job in self.promises
        self.promises[job] = Promise(tuple(servers), now_s + self.plant.patch_s)
        self.done.orders += 1


def _later(free_s: NDArray[np.float64], own: Promise, first: NDArray[np.int64]) -> float:
    """How much later the servers of a promise are free than those that are free first."""
    return float(free_s[list(own.servers)].max() - free_s[first].max())
