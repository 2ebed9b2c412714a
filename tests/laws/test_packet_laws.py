"""Whatever is sent over whatever tree or torus: bytes are conserved, pauses lose nothing, nobody waits for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_fabrics import GBPS, US, together
from packet_worlds import step_through

from ropewalk.fabric import BCube, Fabric, FabricDraft, FatTree, Torus
from ropewalk.routing import Router, dimension, ecmp, shortest
from ropewalk.sim.packet import (
    Dcqcn,
    DcqcnPaper,
    PacketSettings,
    PacketTrace,
    PathSpread,
    Roce,
    SwitchSettings,
    simulate_packets,
)  # fmt: skip
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.transport import TransportSettings
from ropewalk.task import TaskGraph

FABRICS: list[tuple[Fabric, Router]] = [
    (FatTree(4, bandwidth=40 * GBPS, latency=US).build(), ecmp(3)),
    (FatTree(4, bandwidth=25 * GBPS, latency=0.0).build(), ecmp(1)),
    (BCube(3, 2, bandwidth=40 * GBPS, latency=US).build(), dimension()),
    (Torus((3, 3), bandwidth=40 * GBPS, latency=US).build(), dimension()),
]
TRANSPORTS: list[TransportSettings] = [Roce(), Dcqcn(), DcqcnPaper()]

worlds = st.sampled_from(FABRICS)
transports = st.sampled_from(TRANSPORTS)


@st.composite
def transfers(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    host = st.integers(0, 8)
    some = draw(st.lists(st.tuples(host, host, st.integers(1, 60_000)), min_size=1, max_size=12))
    return [(src, dst if dst != src else (dst + 1) % 9, size) for src, dst, size in some]


def _graph(asked: list[tuple[int, int, int]]) -> TaskGraph:
    src, dst, size = np.array(asked).T
    return together(src, dst, size.astype(np.float64))


def _run(
    world: tuple[Fabric, Router], asked: list[tuple[int, int, int]], given_settings: PacketSettings
) -> PacketTrace:
    fabric, router = world
    graph = _graph(asked)
    return simulate_packets(graph, router(fabric, graph.place, graph.peer), given_settings)


def _tight(fabric: Fabric) -> SwitchSettings:
    """As little buffer as leaves each class a few packets beyond what pauses need: everything pauses."""
    ports = np.bincount(fabric.link_dst)[fabric.hosts :].max(initial=1)
    return SwitchSettings(buffer_bytes=int(ports * (4096 + 16_000) + 40_000))


@given(worlds, transfers(), transports)
@settings(max_examples=60)
def test_every_byte_arrives_once_and_links_carry_each_packet_once(
    world: tuple[Fabric, Router], asked: list[tuple[int, int, int]], transport: TransportSettings
) -> None:
    fabric, router = world
    graph = _graph(asked)
    routes = router(fabric, graph.place, graph.peer)
    settings_of_run = PacketSettings(transport, _tight(fabric), sample_every_s=1e-3)
    trace = simulate_packets(graph, routes, settings_of_run)
    assert trace.drops.sum() == 0
    assert trace.samples is not None
    wanted = np.bincount(graph.peer, weights=graph.amount, minlength=fabric.hosts)
    assert trace.samples.received_bytes[-1].tolist() == wanted.tolist()
    # Data and acknowledgements of each packet on each link of its way, and pause frames besides.
    packets = np.ceil(graph.amount / 1000)
    pair = routes.find(graph.place, graph.peer)
    data = routes.link_bytes(pair, graph.amount + 48 * packets)
    opposite = np.arange(fabric.links) ^ 1
    acks = routes.link_bytes(pair, 60 * packets)[opposite]
    frames = trace.wire_bytes - data - acks
    assert (frames >= 0).all()
    assert (frames % 64 == 0).all()
    assert frames.sum() >= 64 * trace.pauses.sum()
    assert frames.sum() <= 64 * 2 * (trace.pauses.sum() + fabric.links)


link = st.tuples(st.sampled_from([10, 25, 40, 100]), st.integers(0, 3_000_000))


@given(st.lists(link, min_size=1, max_size=6), st.integers(1, 60_000))
@settings(max_examples=40)
def test_a_quiet_path_takes_serialization_propagation_and_store_and_forward(
    links: list[tuple[int, int]], size: int
) -> None:
    """Whatever the rates and lengths of the links: exactly what a packet after the other through each of them takes."""
    draft = FabricDraft("path")
    ends = draft.add_hosts(["a", "b"])
    between = draft.add_switches([f"s{number}" for number in range(len(links) - 1)], level=1)
    nodes = np.concatenate([ends[:1], between, ends[1:]])
    gbps, latency = np.array(links).T
    draft.add_links(nodes[:-1], nodes[1:], gbps * GBPS, latency * 1e-12)
    routes = shortest(draft.freeze(), np.array([0]), np.array([1]))
    trace = simulate_packets(_graph([(0, 1, size)]), routes, PacketSettings(Roce()))
    packets = [min(1000, size - offset) + 48 for offset in range(0, size, 1000)]
    there = [0] * len(packets)
    for rate, delay in links:
        free = 0
        for number, wire in enumerate(packets):
            free = max(free, there[number]) + wire * 8000 // rate
            there[number] = free + delay
    assert trace.end_ps.tolist() == [there[-1]]
    assert trace.drops.sum() == trace.pauses.sum() == 0


@given(worlds, transfers(), transports)
@settings(max_examples=30)
def test_no_flow_is_faster_than_its_quiet_path_and_no_link_faster_than_its_rate(
    world: tuple[Fabric, Router], asked: list[tuple[int, int, int]], transport: TransportSettings
) -> None:
    fabric, _ = world
    trace = _run(world, asked, PacketSettings(transport))
    for task in range(trace.graph.tasks):
        one = asked[task : task + 1]
        alone = _run(world, one, PacketSettings(Roce()))
        assert trace.end_ps[task] >= alone.end_ps[0]
    busy_ps = trace.wire_bytes / fabric.bandwidth * 1e12
    assert (busy_ps <= trace.acknowledged_ps.max() + 1).all()


@given(worlds, transfers(), transports, st.integers(0, 5))
@settings(max_examples=15)
def test_the_same_run_twice_gives_the_same_bytes(
    world: tuple[Fabric, Router], asked: list[tuple[int, int, int]], transport: TransportSettings, seed: int
) -> None:
    marks_early = SwitchSettings(kmin_bytes=2_000, kmax_bytes=60_000)
    first = _run(world, asked, PacketSettings(transport, marks_early, seed=seed))
    second = _run(world, asked, PacketSettings(transport, marks_early, seed=seed))
    for name in ("start_ps", "end_ps", "acknowledged_ps", "pauses", "marks", "most_queued", "wire_bytes", "paused_ps"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
    assert first.events == second.events


@given(transfers(), transports)
@settings(max_examples=10)
def test_packets_of_a_flow_arrive_in_the_order_they_were_sent(
    asked: list[tuple[int, int, int]], transport: TransportSettings
) -> None:
    fabric, router = FABRICS[0]
    graph = _graph(asked)
    had = np.zeros(graph.tasks, np.int64)

    def look(world: w.World) -> None:
        now = world.flows["received"]
        grown = np.flatnonzero(now != had)
        # One event brings one packet, and in-order delivery takes each as it comes: whole packets, never a jump.
        assert len(grown) <= 1
        assert (now[grown] - had[grown] <= 1000).all()
        assert (world.flows["acked"] <= now).all()
        had[:] = now

    step_through(graph, router(fabric, graph.place, graph.peer), PacketSettings(transport, _tight(fabric)), look)
    assert (had == graph.amount).all()


@given(transfers())
@settings(max_examples=20)
def test_up_and_down_a_tree_nothing_waits_in_a_circle(asked: list[tuple[int, int, int]]) -> None:
    fabric, router = FABRICS[0]
    everyone = [(src, dst, 30_000) for src in range(16) for dst in (0, 5, 15) if src != dst]
    trace = _run((fabric, router), [*everyone, *asked], PacketSettings(Roce(), _tight(fabric)))
    assert (trace.end_ps >= 0).all()
    assert trace.drops.sum() == 0
    assert trace.pauses.sum() > 0


@given(worlds, transfers(), st.sampled_from(list(PathSpread)))
@settings(max_examples=20)
def test_however_transfers_spread_they_carry_the_same_bytes(
    world: tuple[Fabric, Router], asked: list[tuple[int, int, int]], spread: PathSpread
) -> None:
    trace = _run(world, asked, PacketSettings(Roce(), spread=spread, sample_every_s=1e-3))
    assert trace.samples is not None
    assert trace.samples.received_bytes[-1].sum() == sum(size for _, _, size in asked)


@pytest.mark.parametrize("times", [1, 2, 4, 8])
def test_the_pool_of_packets_does_not_grow_with_time(times: int) -> None:
    fabric, router = FABRICS[0]
    graph = _graph([(src, (src + 1) % 16, 20_000 * times) for src in range(16)])

    def look(world: w.World) -> None:
        assert len(world.packets) == 4096

    step_through(graph, router(fabric, graph.place, graph.peer), PacketSettings(Roce()), look)


def test_events_grow_with_hosts_times_bytes_and_no_faster() -> None:
    def events(radix: int, size: int) -> int:
        hosts = radix**3 // 4
        tree = FatTree(radix, bandwidth=40 * GBPS, latency=US).build()
        ring = [(src, (src + 1) % hosts, size) for src in range(hosts)]
        return _run((tree, ecmp(0)), ring, PacketSettings(Roce())).events

    once = events(4, 500_000)
    assert events(4, 2_000_000) == pytest.approx(4 * once, rel=0.02)
    # In a larger tree fewer neighbours are in another pod, so paths are shorter on average.
    assert events(8, 500_000) <= 8 * once
