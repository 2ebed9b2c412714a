"""The whole state of a packet-level run, as arrays: packets, links, queues, switches, flows, tasks, what is due when.

Times are integer picoseconds. A *link* is directed and stands for three things at once: the wire, the port at its
source that sends on it, and the port at its destination that receives from it. A *queue* is a (link, class) pair: the
packets of a class that wait at the source of the link, and the bytes of that class that came in over it and still sit
in the switch at its destination. Class 0 is control and goes first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints, Ints32, Words

RECORDS = NDArray[Any]

CACHE_LINE = 64

NEVER = np.int64(2**62)
"""A time that does not come."""

NO_WINDOW = np.int64(2**62)
"""A window that never closes."""

DATA, ACK, NACK, PAUSE, RESUME = range(5)
"""Kinds of packets."""

PACKET = np.dtype(
    [
        ("arrival", np.int64),  # when its last bit reaches the end of the link it is on; in a fair queue: its tag
        ("seq", np.int64),  # first byte of a data packet; bytes received in order, of an acknowledgement
        ("stamp", np.int64),  # when it was first put on the wire
        ("next", np.int32),  # behind it in its queue, on its wire, or in the free list
        ("flow", np.int32),
        ("path", np.int32),
        ("hop", np.int32),  # where it is in `world.hops`
        ("last", np.int32),  # its last hop there
        ("size", np.int32),  # bytes on the wire
        ("payload", np.int32),
        ("kind", np.int8),
        ("lane", np.int8),  # class; of a pause frame: the class to pause
        ("mark", np.int8),
        ("again", np.int8),
        ("passed", np.int8),
    ],
    align=True,
)

LINK = np.dtype(
    [
        # What every packet needs stands in the first 64 bytes: one line of the cache.
        ("free_at", np.int64),  # when the packet being sent is out
        ("latency", np.int64),
        ("sent_bytes", np.int64),
        ("queued_bytes", np.int64),  # over all data classes
        ("flight_head", np.int32),
        ("flight_tail", np.int32),
        ("waiting", np.int32),  # packets queued and flows that may send
        ("back", np.int32),  # the link of the opposite direction, -1
        ("src", np.int32),
        ("dst", np.int32),
        ("pending", np.int16),  # 1: an event for this port is in the near queue
        ("speed_class", np.int16),  # row of `world.wire`
        ("shift", np.int16),  # as an ingress: its threshold is the free buffer shifted by this
        ("turn", np.int16),  # at a host: 1 when it is the turn of relayed packets
        ("most_queued", np.int64),
        ("headroom", np.int64),
        ("kmin", np.float64),
        ("kmax", np.float64),
        ("speed", np.float64),  # bytes/s
        ("pauses", np.int64),  # pause frames that stopped this link
        ("marks", np.int64),
        ("drops", np.int64),
        ("paused_classes", np.int64),
        ("paused_since", np.int64),
        ("paused_time", np.int64),  # while some class was paused
        ("virtual", np.int64),  # where flows take turns: the tag of the packet sent last
        ("unused", np.int64, (4,)),  # up to a whole number of lines
    ],
    align=True,
)

QUEUE = np.dtype(
    [
        ("bytes", np.int64),  # waiting at the source of the link
        ("ingress", np.int64),  # came in over the link, in reserve or shared buffer at its destination
        ("headroom", np.int64),  # came in over the link, in headroom
        ("head", np.int32),
        ("tail", np.int32),
        ("paused", np.int32),  # 1: may not send on the link
        ("pausing", np.int32),  # 1: its destination has paused it
        ("ready_first", np.int32),  # first word of its flows in `world.ready`
        ("slot_first", np.int32),  # first of its slots in `world.slots`
        ("slots", np.int32),  # slots ever used
        ("free_slot", np.int32),
        ("last_slot", np.int32),  # the flow that sent last
        ("ready", np.int32),  # flows that may send
    ],
    align=True,
)

SWITCH = np.dtype([("shared", np.int64), ("pool", np.int64), ("used", np.int64), ("is_switch", np.int64)], align=True)
"""`shared`: bytes in the shared buffer; `pool`: the buffer less all headroom and reserve; `used`: all bytes."""

FLOW = np.dtype(
    [
        ("size", np.int64),
        ("sent", np.int64),
        ("acked", np.int64),
        ("window", np.int64),
        ("next_send", np.int64),
        ("resend", np.int64),
        ("received", np.int64),
        ("furthest", np.int64),  # highest byte ever sent
        ("rate", np.float64),  # bytes/s
        ("line_rate", np.float64),  # of its first link, or its cap
        ("delivered_at", np.int64),
        ("acked_at", np.int64),
        ("task", np.int32),
        ("port", np.int32),  # its first link
        ("slot", np.int32),
        ("path_first", np.int32),
        ("paths", np.int32),
        ("path", np.int32),  # the next one to use
        ("payload", np.int32),
        ("lane", np.int32),
        ("state", np.int32),
        ("is_ready", np.int32),
        ("timeouts", np.int64),  # times it gave up waiting and sent again
    ],
    align=True,
)

SLOT = np.dtype([("head", np.int32), ("tail", np.int32)], align=True)
"""A slot of the near queue: its first and last event, or -1."""

NEAR = np.dtype([("time", np.int64), ("next", np.int64)], align=True)
"""An event of the near queue."""

IDLE, SENDING, ENDED = range(3)
"""States of a flow: not begun, begun, acknowledged to its end."""

PATH = np.dtype(
    [("first", np.int32), ("last", np.int32), ("back_first", np.int32), ("back_last", np.int32)], align=True
)
"""Ranges of `world.hops`: the path of data and the path of its acknowledgements; `last` is inclusive."""

TASK = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("sent_at", np.int64),  # when the sender knew that all had arrived
        ("delay", np.int64),  # start-up of a transfer, duration of a compute task
        ("priority", np.float64),
        ("kind", np.int32),
        ("place", np.int32),  # stream of a compute task
        ("waits_for", np.int32),
        ("flow_first", np.int32),
        ("flows", np.int32),
        ("flows_left", np.int32),
        ("state", np.int32),
    ],
    align=True,
)

WAITING, STARTING, RUNNING, DONE = range(4)
"""States of a task; while STARTING and RUNNING (a compute task) its event is in the far queue."""

# What the scalars of the clock are.
(
    NOW,
    EVENTS,
    FREE,
    FREE_COUNT,
    RANDOM,
    SEQUENCE,
    CURSOR,
    FAR_SIZE,
    TASKS_DONE,
    DROPS,
    MARKS,
    STACK,
    FLOWS_ENDED,
    HOPS,
    PICKING,
) = range(15)
CLOCK_SIZE = 16

# What the engine's own settings are.
(HEADER, ACK_SIZE, PAUSE_SIZE, CLASSES, ACK_LANE, PFC, RESERVE, RESUME_OFFSET, QUEUE_LIMIT, ECN, SPRAY, SENDER_ENDS) = (
    range(12)
)
(PAUSE_FIRST, TRUNCATE, TIMERS, TRANSPORT, BUCKET_SHIFT, TELEMETRY, TASK_EVENTS, BUFFER) = range(12, 20)
(FAIR, HOST_QUEUE, TOKENS) = range(20, 23)
KNOBS_SIZE = 23


class World(NamedTuple):
    """Every array of a run; see the records above for what they hold."""

    clock: Ints
    knobs: Ints
    pmax: Floats
    packets: RECORDS
    links: RECORDS
    queues: RECORDS
    switches: RECORDS
    flows: RECORDS
    paths: RECORDS
    tasks: RECORDS
    hops: Ints32
    tags: Ints
    """By flow and port of its way there and back: the tag of its latest packet, where flows take turns."""
    wire: Ints
    """Picoseconds on the wire by (speed class, bytes)."""
    follow_first: Ints
    follower: Ints32
    stack: Ints32
    near_slots: RECORDS
    near: RECORDS
    near_bits: Words
    near_words: Words
    far_heap: Ints32
    far_place: Ints32
    far_time: Ints
    far_order: Ints
    ready: Words
    slots: Ints32
    stream_busy: Ints32
    picking: Ints32
    """Free streams with ready tasks: they take one at the end of this instant."""
    pile_root: Ints
    pile_left: Ints
    pile_right: Ints
    pile_first: Floats
    pile_second: Floats
    numbers: Floats
    counts: Ints
    constants: Floats
    telemetry: Floats
    received: Ints
    """Payload bytes that each host has received in order."""


def in_cache_lines(length: int, dtype: np.dtype[np.void]) -> RECORDS:
    """Zeroed records that start on a line of the cache, so that none of their lines is split."""
    raw = np.zeros(max(length, 1) * dtype.itemsize + CACHE_LINE, np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + length * dtype.itemsize].view(dtype)
