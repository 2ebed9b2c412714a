"""The topology of a shard, made for what its job sends, and how long each exchange takes on it.

Cables and routes are those of `codesign.wiring_for`; every exchange is run on them by the flow simulation, with nobody
else, because nobody else is there. Cables have no latency here, as nothing in a replay has, so seconds grow with bytes,
and jobs that send the same in the same proportions share one wiring.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware import Cluster, Ports, Servers
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.shards.allocate import SHARD
from ropewalk.tenancy.shards.demands import demands_of, together
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.work import Iteration, JobExchange

if TYPE_CHECKING:
    from ropewalk.codesign.demands import Demands
    from ropewalk.codesign.network import StepNetwork

DIGITS = 4
"""Of the proportions of exchanges that wirings are made for."""
ONE_ITERATION = 1e9
"""Bytes of all exchanges together that are simulated; time is in proportion."""


@dataclass(frozen=True)
class WiredShard:
    """The cables of a shard, between its servers in the order of ranks."""

    wiring: Wiring
    seconds_a_byte: tuple[float, ...]
    """Of every exchange, for each of its bytes; 0 for those that stay inside servers."""

    @property
    def cables(self) -> int:
        """Fibres that must be patched for it."""
        return sum(count for _, _, count in self.wiring.cables)


def wired_for(plant: PanelPlant, work: Iteration, allocation: Allocation) -> WiredShard | None:
    """The topology of a job on its shard; None where nothing leaves a server.

    >>> from ropewalk.tenancy.occupancy import Occupancy
    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.shards.allocate import shard
    >>> behind = PanelPlant.of_plant(plant("leaf-spine:4x8x8", gpus_per_server=4))
    >>> found = wired_for(behind, Iteration(0.1, (JobExchange("ring", 1e9),)), shard(Occupancy(behind), "a", 16))
    >>> found.cables, round(1e9 * found.seconds_a_byte[0] * behind.ports * behind.nic_bandwidth / 1e9, 3)
    (16, 1.5)
    """
    if allocation.stage != SHARD:
        return None
    _, server = np.unique(np.array(allocation.gpus) // plant.gpus_per_server, return_inverse=True)
    total = sum(exchange.size_bytes for exchange in work.exchanges)
    shape = tuple(_in_proportion(exchange, total) for exchange in work.exchanges if exchange.size_bytes)
    return _wired(plant.ports, plant.nic_bandwidth, plant.server_bandwidth, tuple(server.tolist()), shape)


def on_its_cables(footprint: Footprint, plant: PanelPlant, allocation: Allocation) -> Footprint:
    """A job on its own topology: phases take what their exchange takes there, and never less than NICs do.

    A collective that keeps one NIC of a server busy does not get faster by cables for all of them.
    """
    wired = wired_for(plant, footprint.work, allocation)
    if wired is None:
        return footprint
    sends = [number for number, one in enumerate(footprint.work.exchanges) if one.size_bytes]
    took = np.zeros(len(footprint.work.exchanges))
    for number, seconds in zip(sends, wired.seconds_a_byte, strict=True):
        took[number] = seconds * footprint.work.exchanges[number].size_bytes
    return replace(footprint, wired_s=_over_phases(footprint, took))


def _over_phases(footprint: Footprint, took: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds of exchanges, dealt to their phases by what NICs take for each."""
    sends = footprint.exchange >= 0
    which = footprint.exchange[sends]
    quiet = np.bincount(which, footprint.floor_s[sends], minlength=len(took))
    found = np.zeros(len(footprint.exchange))
    found[sends] = footprint.floor_s[sends] * np.divide(took, quiet, out=np.zeros_like(took), where=quiet > 0)[which]
    return found


def _in_proportion(exchange: JobExchange, total: float) -> JobExchange:
    """What cables depend on: who sends to whom, and which part of all bytes."""
    part = float(f"{exchange.size_bytes / total:.{DIGITS}g}")
    return JobExchange(exchange.collective, part * ONE_ITERATION, 0.0, exchange.group, exchange.stride, exchange.groups)


@lru_cache(maxsize=1024)
def _wired(
    ports: int, bandwidth: float, inside: float, server_of_rank: tuple[int, ...], exchanges: tuple[JobExchange, ...]
) -> WiredShard | None:
    from ropewalk.codesign.network import StepNetwork
    from ropewalk.codesign.wiring_for import wiring_for  # loads SciPy and kernels, which other policies do without

    server = np.array(server_of_rank, np.int64)
    asked = [demands_of(exchange, server) for exchange in exchanges]
    if not asked or not any(one.sum_wire_bytes or one.pair_bytes for one in asked):
        return None
    servers = int(server.max()) + 1
    # The GPU decides nothing here: only ports are wired.
    cluster = Cluster((Servers(servers, ports, "h200", inside, ports, bandwidth),), Ports(ports, duplex=False), 0.0)
    made = wiring_for(together(asked), cluster)
    network = StepNetwork("shard", made.fabric(), made.router(), made.wiring.ring_orders)
    took = [_seconds(one, network) / exchange.size_bytes for one, exchange in zip(asked, exchanges, strict=True)]
    return WiredShard(made.wiring, tuple(took))


def _seconds(asked: Demands, network: StepNetwork) -> float:
    """One exchange on the network of its shard, all of it at once."""
    from ropewalk.codesign.evaluate import time_step
    from ropewalk.task.step import StepSketch

    sketch = StepSketch(asked.servers)
    for group in asked.sums:
        sketch.collective(Act.ALL_REDUCE, group.servers, group.size_bytes)
    for a, b in zip(*np.nonzero(asked.pairs), strict=True):
        sketch.send(int(a), int(b), float(asked.pairs[a, b]))
    return time_step(sketch.step(), network).seconds if asked.sums or asked.pairs.any() else 0.0
