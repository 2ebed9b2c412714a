"""From tasks, routes and settings to the arrays that the engine runs on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric import Fabric
from ropewalk.routing import Routes
from ropewalk.sim.flow.order import turn_round
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.flows import Flows, Ways, opposite_links, spread_out, ways_of
from ropewalk.sim.packet.possible import check_fabric, check_pauses_return, check_transfers
from ropewalk.sim.packet.rounding import PS_PER_S, picoseconds, wire_times
from ropewalk.sim.packet.settings import Completion, PacketSettings, PathSpread
from ropewalk.task import TaskGraph, TaskKind

FIRST_POOL = 4096
"""Packets that a run starts with; the pool grows as needed."""

MOST_HOPS_SEEN = 8
"""Switch ports whose telemetry fits into a packet."""


def build_world(
    graph: TaskGraph, routes: Routes, settings: PacketSettings, ack_routes: Routes | None = None
) -> w.World:
    """The world at time zero, before any task has started."""
    fabric = routes.fabric
    check_fabric(fabric)
    check_transfers(graph, routes)
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    pair = routes.rows_of(graph, transfer)
    size = np.maximum(np.ceil(graph.amount[transfer]), 1).astype(np.int64)
    spread, order = spread_out(routes, pair, size, settings.spread, settings.seed)
    ways = ways_of(routes, ack_routes)
    paths = _paths(ways, order)
    lane = _lanes(graph.priority[transfer], settings.most_classes)
    classes = 1 + int(lane.max(initial=1))
    links, wire = _links(fabric, settings)
    flows = _flows(graph, transfer, spread, lane, paths, ways.hops, links, settings)
    queues, words = _queues(fabric.links, classes, flows)
    tasks = _tasks(graph, transfer, spread)
    streams = int(tasks["place"].max(initial=-1)) + 1
    next_first, follower = turn_round(np.array(graph.dep_start, np.int64), np.array(graph.dep, np.int32), graph.tasks)
    timers = settings.transport.timers + 1
    far = len(flows) * timers + graph.tasks
    slots, shift = _wheel(fabric.links, links, wire, settings)
    switches, buffer = _switches(fabric, links, settings)
    knobs = _knobs(settings, classes, timers, shift, len(flows), buffer)
    clock = np.zeros(w.CLOCK_SIZE, np.int64)
    clock[w.RANDOM] = settings.seed
    pool = w.in_cache_lines(FIRST_POOL, w.PACKET)
    pool["next"] = np.arange(1, FIRST_POOL + 1)
    clock[w.FREE_COUNT] = FIRST_POOL
    seen = (FIRST_POOL, MOST_HOPS_SEEN, 4) if settings.transport.telemetry else (0, 0, 4)
    return w.World(
        clock=clock,
        knobs=knobs,
        pmax=np.array([settings.switch.pmax]),
        packets=pool,
        links=links,
        queues=queues,
        switches=switches,
        flows=flows,
        paths=paths,
        tasks=tasks,
        hops=ways.hops,
        tags=_tags(len(flows), paths, settings),
        wire=wire,
        follow_first=next_first,
        follower=follower,
        **_calendar(fabric.links, slots, max(far, 1)),
        ready=np.zeros(max(words, 1), np.uint64),
        slots=np.zeros(max(len(flows), 1), np.int32),
        **_piles(max(streams, 1), max(graph.tasks, 1)),
        numbers=np.zeros((len(flows), settings.transport.numbers)),
        counts=np.zeros((len(flows), settings.transport.counts), np.int64),
        constants=settings.transport.constants().astype(np.float64),
        telemetry=np.zeros(seen),
        received=np.zeros(fabric.nodes, np.int64),
    )


def _paths(ways: Ways, order: NDArray[np.int64]) -> NDArray[np.void]:
    """Where the hops of every path begin and end, there and back."""
    paths = np.zeros(len(order), w.PATH)
    for name in ("first", "last", "back_first", "back_last"):
        paths[name] = getattr(ways, name)[order]
    return paths


def _calendar(links: int, slots: int, far: int) -> dict[str, NDArray[Any]]:
    """Nothing is due yet: the wheel of what happens soon, and the heap of what happens later."""
    return {
        "near_slots": np.full(2 * slots, -1, np.int32).view(w.SLOT),
        "near": np.zeros(2 * links, w.NEAR),
        "near_bits": np.zeros(slots // 64, np.uint64),
        "near_words": np.zeros(-(-slots // 4096), np.uint64),
        "far_heap": np.zeros(far, np.int32),
        "far_place": np.full(far, -1, np.int32),
        "far_time": np.zeros(far, np.int64),
        "far_order": np.zeros(far, np.int64),
    }


def _piles(streams: int, tasks: int) -> dict[str, NDArray[Any]]:
    """Streams without work: a pile of ready tasks for each of them."""
    return {
        "stack": np.zeros(tasks, np.int32),
        "stream_busy": np.zeros(streams, np.int32),
        "picking": np.zeros(streams, np.int32),
        "pile_root": np.full(streams, -1, np.int64),
        "pile_left": np.full(tasks, -1, np.int64),
        "pile_right": np.full(tasks, -1, np.int64),
        "pile_first": np.zeros(tasks),
        "pile_second": np.zeros(tasks),
    }


def _tags(flows: int, paths: NDArray[np.void], settings: PacketSettings) -> NDArray[np.int64]:
    """Room for the tags of fair queues."""
    if not settings.switch.fair:
        return np.zeros((1, 1), np.int64)
    ports = paths["last"] - paths["first"] + paths["back_last"] - paths["back_first"] + 2
    return np.zeros((max(flows, 1), int(ports.max(initial=1))), np.int64)


def grown_pool(world: w.World) -> w.World:
    """The same world with twice as many packets."""
    had = len(world.packets)
    packets = w.in_cache_lines(2 * had, w.PACKET)
    packets[:had] = world.packets
    packets["next"][had:] = np.arange(had + 1, 2 * had + 1)
    packets["next"][-1] = world.clock[w.FREE]
    world.clock[w.FREE] = had
    world.clock[w.FREE_COUNT] += had
    telemetry = world.telemetry
    if len(telemetry):
        telemetry = np.concatenate([telemetry, np.zeros_like(telemetry)])
    return world._replace(packets=packets, telemetry=telemetry)


def _lanes(priority: NDArray[np.int32], most: int) -> NDArray[np.int64]:
    """Classes 1, 2, … by priority, the most urgent first; neighbours share a class where there are too many."""
    ranks, rank = np.unique(priority, return_inverse=True)
    if len(ranks) <= most:
        return np.asarray(rank + 1, np.int64)
    return np.asarray(rank * most // len(ranks) + 1, np.int64)


def _links(fabric: Fabric, settings: PacketSettings) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Wires and ports; and how long bytes take on them, by speed class."""
    links = w.in_cache_lines(fabric.links, w.LINK)
    speeds, links["speed_class"] = np.unique(fabric.bandwidth, return_inverse=True)
    links["speed"] = fabric.bandwidth
    links["latency"] = [picoseconds(seconds) for seconds in fabric.latency.tolist()]
    links["src"], links["dst"] = fabric.link_src, fabric.link_dst
    links["back"] = opposite_links(fabric)
    links["flight_head"] = links["flight_tail"] = -1
    switch = settings.switch
    longest = max(settings.wire_bytes, settings.ack_bytes, settings.pause_bytes)
    if switch.headroom_bytes is None:
        on_wire = np.ceil(fabric.bandwidth * fabric.latency)
        # Until a pause acts it waits for one packet, travels, and lets the sender finish one packet.
        needed = 2 * on_wire + 2 * longest + settings.pause_bytes
        links["headroom"] = np.maximum(3 * on_wire, needed)
    else:
        links["headroom"] = switch.headroom_bytes
    gbps = fabric.bandwidth * 8e-9
    links["kmin"] = 4000 * gbps if switch.kmin_bytes is None else switch.kmin_bytes
    links["kmax"] = 16000 * gbps if switch.kmax_bytes is None else switch.kmax_bytes
    host_port = (fabric.link_src < fabric.hosts) | (fabric.link_dst < fabric.hosts)
    nic = fabric.bandwidth[host_port].min(initial=np.inf)
    # A port faster than the hosts gets a larger part of the buffer: twice for each doubling.
    links["shift"] = np.maximum(switch.alpha_shift - np.maximum(np.ceil(np.log2(fabric.bandwidth / nic)), 0), 0)
    if switch.pause:
        check_pauses_return(fabric, links["back"])
    return links, wire_times(speeds, longest, truncate_ns=settings.truncate_ns)


def _switches(fabric: Fabric, links: NDArray[np.void], settings: PacketSettings) -> tuple[NDArray[np.void], int]:
    """The switches at rest, and the buffer that each has."""
    switches = np.zeros(fabric.nodes, w.SWITCH)
    switches["is_switch"][fabric.hosts :] = 1
    ports = np.bincount(fabric.link_dst, minlength=fabric.nodes)
    headroom = np.bincount(fabric.link_dst, weights=links["headroom"], minlength=fabric.nodes)
    kept = ports * settings.switch.reserve_bytes + headroom
    buffer = settings.switch.buffer_bytes
    if buffer is None:
        gbps = fabric.bandwidth.max(initial=0.0) * 8e-9
        buffer = max(int(12 * 2**20 * max(gbps / 40, 1)), 2 * int(kept[fabric.hosts :].max(initial=0)))
    switches["pool"] = buffer - kept
    poor = np.flatnonzero((switches["pool"] < settings.wire_bytes) & (switches["is_switch"] == 1))
    if settings.switch.pause and len(poor):
        node = int(poor[0])
        raise FabricError(
            f"switch {fabric.node_names[node]} keeps {int(kept[node])} bytes as reserve and headroom for "
            f"{int(ports[node])} ports, of a buffer of {buffer}: enlarge the buffer or shrink headroom"
        )
    return switches, buffer


def _flows(
    graph: TaskGraph, transfer: NDArray[np.int64], spread: Flows, lane: NDArray[np.int64], paths: NDArray[np.void],
    hops: NDArray[np.int32], links: NDArray[np.void], settings: PacketSettings,
) -> NDArray[np.void]:  # fmt: skip
    flows = np.zeros(len(spread.size), w.FLOW)
    flows["size"] = spread.size
    flows["task"] = transfer[spread.transfer]
    flows["port"] = hops[paths["first"][spread.path_first]]
    flows["path_first"] = flows["path"] = spread.path_first
    flows["paths"] = spread.paths
    flows["lane"] = lane[spread.transfer]
    flows["payload"] = settings.payload_bytes
    flows["line_rate"] = np.minimum(links["speed"][flows["port"]], graph.rate_cap[flows["task"]])
    flows["resend"] = -1
    flows["slot"] = -1
    flows["delivered_at"] = flows["acked_at"] = -1
    return flows


def _queues(links: int, classes: int, flows: NDArray[np.void]) -> tuple[NDArray[np.void], int]:
    """Queues with room for the flows of each in bit sets; returns how many words these need."""
    queues = w.in_cache_lines(links * classes, w.QUEUE)
    queues["head"] = queues["tail"] = -1
    queues["free_slot"] = queues["last_slot"] = -1
    users = np.bincount(flows["port"].astype(np.int64) * classes + flows["lane"], minlength=links * classes)
    words = -(-users // 64)
    queues["slot_first"] = np.cumsum(users) - users
    queues["ready_first"] = np.cumsum(words) - words
    return queues, int(words.sum())


def _tasks(graph: TaskGraph, transfer: NDArray[np.int64], spread: Flows) -> NDArray[np.void]:
    tasks = np.zeros(graph.tasks, w.TASK)
    tasks["kind"] = graph.kind
    tasks["waits_for"] = np.diff(graph.dep_start)
    tasks["priority"] = graph.priority
    tasks["start"] = tasks["end"] = tasks["sent_at"] = -1
    tasks["place"] = -1
    compute = np.flatnonzero(graph.kind == TaskKind.COMPUTE)
    stream = graph.place[compute].astype(np.int64) * (1 << 16) + graph.stream[compute]
    tasks["place"][compute] = np.unique(stream, return_inverse=True)[1]
    tasks["delay"][compute] = np.rint(graph.amount[compute] * PS_PER_S)
    tasks["delay"][transfer] = np.rint(graph.start_up[transfer] * PS_PER_S)
    flows = np.bincount(spread.transfer, minlength=len(transfer))
    tasks["flow_first"][transfer] = np.cumsum(flows) - flows
    tasks["flows"][transfer] = tasks["flows_left"][transfer] = flows
    return tasks


def _wheel(links: int, link: NDArray[np.void], wire: NDArray[np.int64], settings: PacketSettings) -> tuple[int, int]:
    """Slots of the near queue and how many bits of the time one slot spans: fine slots, but the horizon must fit."""
    slots = 64
    while slots < 2 * links and slots < 2**17:
        slots *= 2
    horizon = int((wire[link["speed_class"], -1] + link["latency"]).max(initial=1)) + 1
    shift = 0
    while (slots - 2) << shift < horizon:
        shift += 1
    return slots, shift


def _knobs(
    settings: PacketSettings, classes: int, timers: int, shift: int, flows: int, buffer: int
) -> NDArray[np.int64]:
    switch = settings.switch
    knobs = np.zeros(w.KNOBS_SIZE, np.int64)
    for place, value in (
        (w.HEADER, settings.header_bytes),
        (w.ACK_SIZE, settings.ack_bytes),
        (w.PAUSE_SIZE, settings.pause_bytes),
        (w.CLASSES, classes),
        (w.ACK_LANE, 0 if settings.ack_in_control_class else 1),
        (w.PFC, switch.pause),
        (w.RESERVE, switch.reserve_bytes),
        (w.RESUME_OFFSET, switch.resume_bytes),
        (w.QUEUE_LIMIT, buffer if switch.queue_limit_bytes is None else switch.queue_limit_bytes),
        (w.BUFFER, buffer),
        (w.ECN, switch.mark),
        (w.SPRAY, settings.spread is PathSpread.SPRAY),
        (w.SENDER_ENDS, settings.completion is Completion.SENDER),
        (w.PAUSE_FIRST, switch.pause_frames_first),
        (w.TRUNCATE, settings.truncate_ns),
        (w.TIMERS, timers),
        (w.TRANSPORT, settings.transport.code),
        (w.BUCKET_SHIFT, shift),
        (w.TELEMETRY, settings.transport.telemetry),
        (w.TASK_EVENTS, flows * timers),
        (w.FAIR, switch.fair),
        (w.HOST_QUEUE, settings.host_queue),
        (w.TOKENS, settings.token_buckets),
    ):
        knobs[place] = int(value)
    return knobs
