"""The retransmission timer of TCP (RFC 6298): one round trip timed at a time, never over a retransmission (Karn).

The timer is restarted with every acknowledgement of new data. To spare the event queue it is moved only when it runs
out too early, or when it is due earlier than it was set.
"""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.helpers import arm, now
from ropewalk.sim.packet.tcp_columns import (
    LEAST_RTO,
    MOST_RTO,
    RTO,
    RTO_ARMED,
    RTO_DUE,
    RTO_TIMER,
    RTTVAR,
    SRTT,
    TIMED_AT,
    TIMED_UP_TO,
)
from ropewalk.sim.packet.world import World

_GAIN = 1 / 8
_DEVIATION_GAIN = 1 / 4


@kernel
def restart_timer(world: World, flow: int) -> None:
    """The oldest segment out has a whole timeout from now."""
    counts = world.counts[flow]
    due = now(world) + np.int64(world.numbers[flow, RTO])
    counts[RTO_DUE] = due
    if counts[RTO_ARMED] == 0 or counts[RTO_ARMED] > due:
        counts[RTO_ARMED] = due
        arm(world, flow, RTO_TIMER, due)


@kernel
def stop_timer(world: World, flow: int) -> None:
    """Nothing is out."""
    world.counts[flow, RTO_DUE] = 0


@kernel
def timed_out(world: World, flow: int) -> bool:
    """The event of the timer has come: whether it means a timeout. Otherwise it is set again where needed."""
    counts = world.counts[flow]
    counts[RTO_ARMED] = 0
    if counts[RTO_DUE] == 0:
        return False
    if counts[RTO_DUE] > now(world):
        counts[RTO_ARMED] = counts[RTO_DUE]
        arm(world, flow, RTO_TIMER, counts[RTO_DUE])
        return False
    return True


@kernel
def back_off(world: World, flow: int) -> None:
    """After a timeout the next one takes twice as long, until a round trip is measured again."""
    numbers = world.numbers[flow]
    numbers[RTO] = min(2 * numbers[RTO], world.constants[MOST_RTO])
    world.counts[flow, TIMED_UP_TO] = -1


@kernel
def time_segment(world: World, flow: int, packet: int) -> None:
    """Note when a segment left, if none is being timed; a retransmission spoils the measurement under way."""
    counts = world.counts[flow]
    sent = world.packets[packet]
    if sent.again == 1:
        counts[TIMED_UP_TO] = -1
    elif counts[TIMED_UP_TO] < 0:
        counts[TIMED_UP_TO] = sent.seq + sent.payload
        counts[TIMED_AT] = now(world)


@kernel
def measure(world: World, flow: int) -> None:
    """Learn from the acknowledgement of the segment that is being timed."""
    counts = world.counts[flow]
    if counts[TIMED_UP_TO] < 0 or world.flows[flow].acked < counts[TIMED_UP_TO]:
        return
    counts[TIMED_UP_TO] = -1
    numbers = world.numbers[flow]
    sample = float(now(world) - counts[TIMED_AT])
    if numbers[SRTT] == 0.0:
        numbers[SRTT] = sample
        numbers[RTTVAR] = sample / 2
    else:
        numbers[RTTVAR] += _DEVIATION_GAIN * (abs(numbers[SRTT] - sample) - numbers[RTTVAR])
        numbers[SRTT] += _GAIN * (sample - numbers[SRTT])
    timeout = numbers[SRTT] + 4 * numbers[RTTVAR]
    numbers[RTO] = min(max(timeout, world.constants[LEAST_RTO]), world.constants[MOST_RTO])
