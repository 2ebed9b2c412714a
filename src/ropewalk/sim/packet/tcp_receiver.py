"""The receiving end of TCP: in-order delivery, one acknowledgement for two segments, duplicates at once (RFC 5681).

Segments that arrive out of order are held; a map of bits, one for each segment of the receive buffer, says which. Where
congestion marks are echoed, a change of mark sends off the acknowledgement of what came before it, so that the sender
can count marked bytes in spite of delayed acknowledgements (RFC 8257, section 3.2). The last segment of a message is
acknowledged at once, as one that carries FIN is.
"""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.helpers import arm, now, reply
from ropewalk.sim.packet.tcp_columns import (
    ACK_ARMED,
    ACK_DELAY,
    ACK_DUE,
    ACK_EVERY,
    ACK_TIMER,
    CONGESTED,
    HELD,
    HELD_MAP,
    UNANSWERED,
)
from ropewalk.sim.packet.transport import REPLY, SILENT
from ropewalk.sim.packet.world import ACK, World


@kernel
def _place(world: World, flow: int, segment: int) -> int:
    """Where the bit of a segment stands: the map is used round and round."""
    return segment % ((world.counts.shape[1] - HELD_MAP) * 64)


@kernel
def _holds(world: World, flow: int, segment: int) -> bool:
    place = _place(world, flow, segment)
    return bool((world.counts[flow, HELD_MAP + (place >> 6)] >> (place & 63)) & 1)


@kernel
def _flip(world: World, flow: int, segment: int) -> None:
    place = _place(world, flow, segment)
    world.counts[flow, HELD_MAP + (place >> 6)] ^= np.int64(1) << (place & 63)


@kernel
def receive(world: World, flow: int, seq: int, payload: int) -> bool:
    """Take a segment in. True where it is the next one and nothing behind it was held: its answer may wait."""
    state = world.flows[flow]
    counts = world.counts[flow]
    if seq < state.received:
        return False
    segment = seq // state.payload
    if seq > state.received:
        if not _holds(world, flow, segment):
            _flip(world, flow, segment)
            counts[HELD] += 1
        return False
    gap = counts[HELD] > 0
    state.received += payload
    while counts[HELD] > 0:
        segment += 1
        if not _holds(world, flow, segment):
            break
        _flip(world, flow, segment)
        counts[HELD] -= 1
        state.received = min(state.received + state.payload, state.size)
    return not gap and state.received < state.size


@kernel
def on_data(world: World, flow: int, packet: int, echo: bool) -> int:
    """A segment has arrived; `echo` says whether its congestion mark goes back to the sender."""
    came = world.packets[packet]
    counts = world.counts[flow]
    mark = came.mark if echo else 0
    if mark != counts[CONGESTED]:
        if counts[UNANSWERED] > 0:
            earlier = reply(world, flow)
            world.packets[earlier].mark = counts[CONGESTED]
            counts[UNANSWERED] = 0
        counts[CONGESTED] = mark
    may_wait = receive(world, flow, came.seq, came.payload)
    counts[UNANSWERED] += 1
    if may_wait and counts[UNANSWERED] < world.constants[ACK_EVERY]:
        # The timer is moved only when it runs out, so that a steady stream costs no events.
        if counts[UNANSWERED] == 1:
            counts[ACK_DUE] = now(world) + np.int64(world.constants[ACK_DELAY])
            if counts[ACK_ARMED] == 0:
                counts[ACK_ARMED] = 1
                arm(world, flow, ACK_TIMER, counts[ACK_DUE])
        return SILENT
    counts[UNANSWERED] = 0
    came.kind = ACK
    came.seq = world.flows[flow].received
    came.mark = mark
    return REPLY


@kernel
def on_ack_timer(world: World, flow: int) -> None:
    """The timer of delayed acknowledgements: a segment that waited long enough alone is acknowledged."""
    counts = world.counts[flow]
    counts[ACK_ARMED] = 0
    if counts[UNANSWERED] == 0:
        return
    if counts[ACK_DUE] > now(world):
        counts[ACK_ARMED] = 1
        arm(world, flow, ACK_TIMER, counts[ACK_DUE])
        return
    packet = reply(world, flow)
    world.packets[packet].mark = counts[CONGESTED]
    counts[UNANSWERED] = 0
