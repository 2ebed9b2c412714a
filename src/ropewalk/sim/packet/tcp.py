"""The sending end of TCP: slow start, congestion avoidance, fast retransmit and recovery without SACK, timeouts.

What all flavours share is here (RFC 5681, RFC 6582 with its impatient timer, limited transmit of RFC 3042, RFC 6298);
how the window opens beyond slow start and what a loss costs is in the file of each flavour. A window opens only while
it is what limits the flow (RFC 7661): a flow that the host's own port limits keeps the window that it uses.
"""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet import cubic, dctcp, newreno, tcp_receiver
from ropewalk.sim.packet.tcp_columns import (
    BUFFER,
    CWND,
    DUPLICATES,
    DUPLICATES_TO_LOSS,
    FAST_RETRANSMITS,
    FIRST_RTO,
    INITIAL,
    NO_THRESHOLD,
    PARTIAL,
    RECOVER,
    RECOVERING,
    RTO,
    RTO_DUE,
    RTO_TIMER,
    SSTHRESH,
    START_LIMIT,
    TIMED_UP_TO,
    TIMEOUTS_IN_A_ROW,
)
from ropewalk.sim.packet.tcp_timer import back_off, measure, restart_timer, stop_timer, time_segment, timed_out
from ropewalk.sim.packet.transport import CUBIC, DCTCP
from ropewalk.sim.packet.world import TRANSPORT, World

_LIMITED_TRANSMIT = 2
"""Segments beyond the window that the first duplicate acknowledgements let out."""


@kernel
def begin(world: World, flow: int) -> None:
    state = world.flows[flow]
    numbers, counts = world.numbers[flow], world.counts[flow]
    state.rate = state.line_rate
    numbers[CWND] = world.constants[INITIAL]
    numbers[SSTHRESH] = NO_THRESHOLD
    numbers[RTO] = world.constants[FIRST_RTO]
    counts[RECOVER] = -1
    counts[TIMED_UP_TO] = -1
    if world.knobs[TRANSPORT] == DCTCP:
        dctcp.begin(world, flow)
    _open(world, flow)


@kernel
def on_sent(world: World, flow: int, packet: int) -> None:
    time_segment(world, flow, packet)
    if world.counts[flow, RTO_DUE] == 0:
        restart_timer(world, flow)


@kernel
def on_data(world: World, flow: int, packet: int) -> int:
    return tcp_receiver.on_data(world, flow, packet, world.knobs[TRANSPORT] == DCTCP)


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    state = world.flows[flow]
    came = world.packets[packet]
    if came.seq > state.acked:
        _on_new_ack(world, flow, came.seq, came.mark == 1)
    elif came.seq == state.acked and state.sent > state.acked:
        _on_duplicate(world, flow)
    _open(world, flow)


@kernel
def on_timer(world: World, flow: int, which: int) -> None:
    if which != RTO_TIMER:
        tcp_receiver.on_ack_timer(world, flow)
    elif timed_out(world, flow):
        _time_out(world, flow)
        _open(world, flow)


@kernel
def _open(world: World, flow: int) -> None:
    """Tell the engine how much may be out: whole segments, within the buffer."""
    counts = world.counts[flow]
    segments = np.int64(world.numbers[flow, CWND])
    if counts[RECOVERING] == 0 and world.flows[flow].acked > counts[RECOVER]:
        segments += min(counts[DUPLICATES], _LIMITED_TRANSMIT)
    segments = max(min(segments, np.int64(world.constants[BUFFER])), np.int64(1))
    world.flows[flow].window = segments * world.flows[flow].payload


@kernel
def _in_flight(world: World, flow: int) -> float:
    """Segments out, of which the window knows: those of limited transmit do not count (RFC 5681, section 3.2)."""
    state = world.flows[flow]
    return min((state.sent - state.acked + state.payload - 1) // state.payload, np.int64(world.numbers[flow, CWND]))


@kernel
def _on_new_ack(world: World, flow: int, seq: int, marked: bool) -> None:
    state = world.flows[flow]
    numbers, counts = world.numbers[flow], world.counts[flow]
    newly = seq - state.acked
    segments = (newly + state.payload - 1) // state.payload
    flight = (state.sent - state.acked + state.payload - 1) // state.payload
    state.acked = seq
    # Behind a timeout an acknowledgement may cover what was sent before it.
    state.sent = max(state.sent, seq)
    if state.resend < seq:
        state.resend = -1
    measure(world, flow)
    may_open = True
    if world.knobs[TRANSPORT] == DCTCP:
        may_open = dctcp.count_marks(world, flow, newly, marked)
    counts[TIMEOUTS_IN_A_ROW] = 0
    if counts[RECOVERING] == 1 and seq < counts[RECOVER]:
        # A partial acknowledgement: the segment behind it is lost too.
        state.resend = seq
        numbers[CWND] = max(numbers[CWND] - segments + 1, 1.0)
        counts[PARTIAL] += 1
        if counts[PARTIAL] == 1:
            restart_timer(world, flow)
        return
    if counts[RECOVERING] == 1:
        counts[RECOVERING] = 0
        left = (state.sent - state.acked + state.payload - 1) // state.payload
        numbers[CWND] = min(numbers[SSTHRESH], max(left, 1) + 1.0)
    elif may_open:
        _grow(world, flow, segments, flight)
    counts[DUPLICATES] = 0
    if state.sent == state.acked:
        stop_timer(world, flow)
    else:
        restart_timer(world, flow)


@kernel
def _grow(world: World, flow: int, segments: int, flight: int) -> None:
    """Open the window for an acknowledgement of some segments that came while `flight` were out."""
    numbers = world.numbers[flow]
    if numbers[CWND] < numbers[SSTHRESH]:
        if numbers[CWND] < 2 * flight:
            step = min(float(segments), world.constants[START_LIMIT])
            numbers[CWND] = min(numbers[CWND] + step, numbers[SSTHRESH])
    elif flight >= np.int64(numbers[CWND]):
        if world.knobs[TRANSPORT] == CUBIC:
            cubic.avoid_congestion(world, flow, float(segments))
        else:
            newreno.avoid_congestion(world, flow, float(segments))
    numbers[CWND] = min(numbers[CWND], world.constants[BUFFER])


@kernel
def _after_loss(world: World, flow: int, timeout: bool) -> float:
    flight = float(_in_flight(world, flow))
    if world.knobs[TRANSPORT] == CUBIC:
        return cubic.after_loss(world, flow, flight, timeout)
    return newreno.after_loss(flight)


@kernel
def _on_duplicate(world: World, flow: int) -> None:
    state = world.flows[flow]
    numbers, counts = world.numbers[flow], world.counts[flow]
    if counts[RECOVERING] == 1:
        numbers[CWND] += 1.0
        return
    counts[DUPLICATES] += 1
    lost = np.int64(world.constants[DUPLICATES_TO_LOSS])
    if counts[DUPLICATES] != lost or state.acked <= counts[RECOVER]:
        return
    # Fast retransmit (RFC 6582, step 2): the window is inflated by the segments that have left the network.
    numbers[SSTHRESH] = _after_loss(world, flow, False)
    numbers[CWND] = numbers[SSTHRESH] + lost
    counts[RECOVER] = state.furthest
    counts[RECOVERING] = 1
    counts[PARTIAL] = 0
    counts[FAST_RETRANSMITS] += 1
    state.resend = state.acked


@kernel
def _time_out(world: World, flow: int) -> None:
    """Send again from the first segment that is not acknowledged, one segment at first."""
    state = world.flows[flow]
    numbers, counts = world.numbers[flow], world.counts[flow]
    if counts[TIMEOUTS_IN_A_ROW] == 0:
        numbers[SSTHRESH] = _after_loss(world, flow, True)
    counts[TIMEOUTS_IN_A_ROW] += 1
    state.timeouts += 1
    numbers[CWND] = 1.0
    counts[RECOVERING] = 0
    counts[RECOVER] = state.furthest
    counts[DUPLICATES] = 0
    back_off(world, flow)
    stop_timer(world, flow)
    state.resend = -1
    state.sent = state.acked
