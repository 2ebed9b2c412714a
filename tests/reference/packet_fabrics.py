"""Fabrics, phases and paths of packet-level runs that other simulators were asked too."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collectives.table import program_on
from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.routing import Router, Routes
from ropewalk.routing.ecmp import _FIRST_SOURCE_PORT, _address
from ropewalk.routing.routes import unique_pairs
from ropewalk.routing.shortest import HopChoice, walk_shortest
from ropewalk.sim.packet import Completion, PacketSettings, PacketTrace, SwitchSettings, simulate_packets
from ropewalk.sim.packet.transport import TransportSettings
from ropewalk.task import TaskGraph, TaskKind, lockstep, make_graph

GBPS = 1e9 / 8
US = 1e-6


def chain(links: int, gbps: float = 40, latency: float = US) -> Fabric:
    """Two hosts with `links - 1` switches between them."""
    draft = FabricDraft(f"chain of {links}")
    hosts = draft.add_hosts(["a", "b"])
    switches = draft.add_switches([f"s{number}" for number in range(links - 1)], level=1)
    nodes = np.concatenate([hosts[:1], switches, hosts[1:]])
    draft.add_links(nodes[:-1], nodes[1:], gbps * GBPS, latency)
    return draft.freeze()


def star(hosts: int, gbps: float = 40, latency: float = US) -> Fabric:
    """Hosts around one switch."""
    draft = FabricDraft(f"star of {hosts}")
    numbers = draft.add_hosts([f"h{number}" for number in range(hosts)])
    draft.add_links(numbers, draft.add_switches(["s"], level=1), gbps * GBPS, latency)
    return draft.freeze()


def together(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    size: ArrayLike,
    *,
    priority: ArrayLike = 0,
    rate_cap: ArrayLike = np.inf,
) -> TaskGraph:
    """Transfers that all start at time zero."""
    count = len(src)
    return make_graph(
        np.full(count, TaskKind.TRANSFER), src, dst, size, np.zeros(count + 1, int), np.zeros(0, int),
        priority=priority, rate_cap=rate_cap,
    )  # fmt: skip


def as_in_ns3(transport: TransportSettings, seed: int = 0) -> PacketSettings:
    """Whole nanoseconds, buffers of 12 MiB, and times of flows until the last acknowledgement is back."""
    switch = SwitchSettings(buffer_bytes=12 * 2**20)
    return PacketSettings(transport, switch, truncate_ns=True, completion=Completion.SENDER, seed=seed)


def murmur_back(dport: int) -> Router:
    """The way of acknowledgements in the RDMA fork of ns-3: the hash of `murmur` with the ports exchanged."""

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        ports = np.full(len(pair_src), dport | _FIRST_SOURCE_PORT << 16)
        words = np.column_stack([_address(pair_src), _address(pair_dst), ports]).astype(np.uint32)
        out_start, _ = fabric.outgoing()
        latest_first = np.lexsort((np.arange(fabric.links), -fabric.link_dst, fabric.link_src)).astype(np.int32)
        choice = HopChoice(out_start, latest_first, words, np.arange(fabric.nodes, dtype=np.uint32))
        return walk_shortest(fabric, pair_src, pair_dst, choice)

    return route


def phases_us(
    fabric: Fabric, collective: str, settings: PacketSettings, router: Router, back: Router | None = None
) -> tuple[float, list[PacketTrace]]:
    """An all-reduce of 16 MB as the sum of its phases in microseconds, a barrier between any two; and the phases."""
    rounds = lockstep(program_on(fabric, collective), 16e6)
    total, traces = 0.0, []
    known: dict[bytes, PacketTrace] = {}
    for arrows, repeats in zip(rounds.arrows, rounds.repeats(), strict=True):
        src, dst = arrows.src_host, arrows.dst_host
        key = src.tobytes() + dst.tobytes() + arrows.size_bytes.tobytes()
        if key not in known:
            ack_routes = None if back is None else back(fabric, dst, src)
            graph = together(src.astype(np.int64), dst.astype(np.int64), arrows.size_bytes)
            known[key] = simulate_packets(graph, router(fabric, src, dst), settings, ack_routes=ack_routes)
        traces.append(known[key])
        total += int(repeats) * known[key].makespan * 1e6
    return total, traces
