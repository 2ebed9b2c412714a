"""Task graphs on the packet level: who waits for whom, streams, start-up, spreading over paths, samples."""

import numpy as np
import pytest
from packet_fabrics import GBPS, US, chain, star, together

from ropewalk.errors import RouteError
from ropewalk.fabric import FabricDraft, LeafSpine, Torus
from ropewalk.routing import Routes, shortest, source_routes, spray
from ropewalk.sim import simulate
from ropewalk.sim.packet import PacketSettings, PathSpread, Roce, SwitchSettings, simulate_packets
from ropewalk.task import Sketch, TaskGraph

SETTINGS = PacketSettings(Roce())
ONE_PACKET_PS = 2 * (209_600 + 1_000_000)


def _on_star(graph: TaskGraph, settings: PacketSettings = SETTINGS, hosts: int = 4) -> list[int]:
    transfers = graph.peer >= 0
    routes = shortest(star(hosts), graph.place[transfers], graph.peer[transfers])
    return simulate_packets(graph, routes, settings).end_ps.tolist()


def test_a_chain_of_tasks_takes_the_sum() -> None:
    sketch = Sketch()
    forward = sketch.compute(0, 5e-6)
    sent = sketch.transfer(0, 1, 1000, after=[forward])
    joined = sketch.marker(after=[sent])
    back = sketch.transfer(1, 0, 1000, after=[joined], start_up=3e-6)
    sketch.compute(0, 2e-6, after=[back])
    once, again = 5_000_000 + ONE_PACKET_PS, 3_000_000 + ONE_PACKET_PS
    assert _on_star(sketch.graph()) == [5_000_000, once, once, once + again, once + again + 2_000_000]


def test_a_graph_without_transfers_just_computes() -> None:
    sketch = Sketch()
    sketch.compute(0, 5e-6)
    assert _on_star(sketch.graph()) == [5_000_000]


def test_a_stream_computes_one_task_at_a_time_the_most_urgent_first() -> None:
    sketch = Sketch()
    sketch.compute(0, 4e-6)
    sketch.compute(0, 1e-6, priority=2)
    sketch.compute(0, 2e-6, priority=1)
    sketch.compute(0, 9e-6, stream=1)
    sketch.compute(1, 9e-6)
    sketch.transfer(0, 1, 1)
    assert _on_star(sketch.graph())[:5] == [4_000_000, 7_000_000, 6_000_000, 9_000_000, 9_000_000]


def test_markers_that_wait_for_markers_end_at_once() -> None:
    sketch = Sketch()
    first = sketch.marker()
    second = sketch.marker(after=[first])
    third = sketch.marker(after=[first, second])
    sketch.transfer(0, 1, 1000, after=[third])
    assert _on_star(sketch.graph()) == [0, 0, 0, ONE_PACKET_PS]


def test_a_transfer_of_nothing_is_one_packet() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 0)
    assert _on_star(sketch.graph()) == [2 * (49 * 200 + 1_000_000)]


def test_a_graph_without_tasks_takes_no_time() -> None:
    routes = shortest(star(2), np.array([0]), np.array([1]))
    assert simulate_packets(Sketch().graph(), routes, SETTINGS).makespan_ps == 0


def _two_ways() -> Routes:
    """Host 0 reaches host 4 over either of two spines."""
    fabric = LeafSpine(2, 2, 4, bandwidth=40 * GBPS, latency=US).build()
    return spray(fabric, np.array([0]), np.array([4]))


def test_split_transfers_use_every_path_by_its_share() -> None:
    routes = _two_ways()
    graph = together(np.array([0]), np.array([4]), 100_001.0)
    trace = simulate_packets(graph, routes, PacketSettings(Roce(), spread=PathSpread.SPLIT))
    up = routes.link[routes.link_start[:-1] + 1]
    assert len(np.unique(up)) == 2
    assert sorted(trace.wire_bytes[up].tolist()) == [50_000 + 50 * 48, 50_001 + 51 * 48]


def test_sprayed_packets_take_paths_in_turn_and_none_is_lost() -> None:
    routes = _two_ways()
    graph = together(np.array([0]), np.array([4]), 100_000.0)
    trace = simulate_packets(graph, routes, PacketSettings(Roce(), spread=PathSpread.SPRAY))
    up = routes.link[routes.link_start[:-1] + 1]
    assert trace.wire_bytes[up].tolist() == [50 * 1048, 50 * 1048]
    # One port sends it all, so two paths are no faster than one.
    assert trace.makespan_ps == 99 * 209_600 + 4 * 1_209_600


def test_hashed_transfers_keep_to_one_path_and_the_seed_chooses_it() -> None:
    routes = _two_ways()
    graph = together(np.array([0]), np.array([4]), 10_000.0)
    up = routes.link[routes.link_start[:-1] + 1]
    used = set()
    for seed in range(12):
        wire = simulate_packets(graph, routes, PacketSettings(Roce(), seed=seed)).wire_bytes[up].tolist()
        assert sorted(wire) == [0, 10 * 1048]
        used.add(wire.index(10_480))
    assert used == {0, 1}


def test_spraying_over_several_ports_is_a_flow_for_each() -> None:
    torus = Torus((4, 4), bandwidth=40 * GBPS, latency=US).build()
    ways = {(0, 5): [(0.5, [0, 1, 5]), (0.5, [0, 4, 5])]}
    routes = source_routes(torus, ways)
    graph = together(np.array([0]), np.array([5]), 100_000.0)
    trace = simulate_packets(graph, routes, PacketSettings(Roce(), spread=PathSpread.SPRAY))
    assert trace.makespan_ps == 49 * 209_600 + 2 * 1_209_600


def test_samples_show_what_a_receiver_gets_and_what_waits() -> None:
    src, dst = np.array([1, 2]), np.array([0, 0])
    settings = PacketSettings(Roce(), sample_every_s=10e-6)
    trace = simulate_packets(together(src, dst, 1e6), shortest(star(3), src, dst), settings)
    time, rate = trace.throughput(0)
    assert trace.samples is not None
    assert np.diff(time)[:-1] == pytest.approx(10e-6)
    assert trace.samples.received_bytes[-1].tolist() == [2_000_000, 0, 0]
    full = 5e9 / 1.048
    assert rate[1:-2] == pytest.approx(full, rel=0.03)
    assert trace.samples.queued_bytes.max() <= trace.most_queued.max()
    assert trace.samples.queued_bytes[:, 1].max() > 100_000
    assert np.diff(trace.samples.received_bytes[:, 0]).min() >= 0


def test_a_long_run_keeps_few_samples() -> None:
    sketch = Sketch()
    first = sketch.transfer(0, 1, 1000)
    wait = sketch.compute(0, 20e-3, after=[first])
    sketch.transfer(0, 1, 1000, after=[wait])
    graph = sketch.graph()
    routes = shortest(star(2), np.array([0]), np.array([1]))
    trace = simulate_packets(graph, routes, PacketSettings(Roce(), sample_every_s=1e-6))
    assert trace.samples is not None
    assert 2048 <= len(trace.samples.time) <= 4097
    assert (np.diff(trace.samples.time) > 0).all()


def test_progress_is_told_at_the_end() -> None:
    told: list[tuple[int, int]] = []
    routes = shortest(star(2), np.array([0]), np.array([1]))
    graph = together(np.array([0]), np.array([1]), 1000.0)
    simulate_packets(graph, routes, SETTINGS, progress=lambda done, all_of_them: told.append((done, all_of_them)))
    assert told[-1] == (1, 1)


def test_long_messages_on_a_quiet_path_agree_with_the_flow_level() -> None:
    graph = together(np.array([0]), np.array([1]), 1e6)
    routes = shortest(chain(2), np.array([0]), np.array([1]))
    packets = simulate_packets(graph, routes, SETTINGS).makespan
    flow = simulate(graph, routes).makespan
    assert packets / flow == pytest.approx(1.048, rel=0.002)


def test_a_circle_of_pauses_is_reported_and_not_waited_for() -> None:
    """Four switches in a ring, every flow two hops clockwise: each waits for the next one to drain."""
    draft = FabricDraft("circle")
    hosts = draft.add_hosts(["a", "b", "c", "d"])
    ring = draft.add_switches(["A", "B", "C", "D"], level=1)
    draft.add_links(hosts, ring, 40 * GBPS, US)
    draft.add_links(ring, np.roll(ring, -1), 40 * GBPS, US)
    fabric = draft.freeze()
    paths = {(i, (i + 3) % 4): [i, *(4 + (i + step) % 4 for step in range(4)), (i + 3) % 4] for i in range(4)}
    routes = source_routes(fabric, paths)
    src = np.arange(4)
    tight = SwitchSettings(buffer_bytes=90_000, mark=False)
    with pytest.raises(RouteError, match="links pause each other in a cycle"):
        simulate_packets(together(src, (src + 3) % 4, 2e6), routes, PacketSettings(Roce(), tight))
