"""What a TCP connection remembers, and what all flavours of TCP can be told.

A transfer is one message on a connection that is open already: there is no handshake, and the window starts from its
initial size. Windows and thresholds are counted in segments, of the size of a packet's payload.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings
from ropewalk.sim.packet.rounding import PS_PER_S

RTO_TIMER, ACK_TIMER = range(2)
"""Timers: of the sender for what is not acknowledged, of the receiver for what it has not acknowledged yet."""
TIMERS = 2

# Columns of numbers: segments, and picoseconds of the round trip.
CWND, SSTHRESH, SRTT, RTTVAR, RTO = range(5)
NUMBERS = 5
OWN_NUMBERS = 5
"""Columns behind the shared ones that a flavour may use: `NUMBERS` to `NUMBERS + OWN_NUMBERS - 1`."""

# Columns of integers. Of the sender:
DUPLICATES, RECOVER, RECOVERING, PARTIAL, TIMED_UP_TO, TIMED_AT, RTO_DUE, RTO_ARMED, TIMEOUTS_IN_A_ROW = range(9)
# Of the receiver:
UNANSWERED, HELD, CONGESTED, ACK_DUE, ACK_ARMED = range(9, 14)
# What happened so far:
FAST_RETRANSMITS = 14
COUNTS = 15
OWN_COUNTS = 4
"""Columns behind the shared ones that a flavour may use; behind them lies the map of segments held out of order."""
HELD_MAP = COUNTS + OWN_COUNTS

# Constants.
INITIAL, BUFFER, START_LIMIT, ACK_EVERY, ACK_DELAY, LEAST_RTO, MOST_RTO, FIRST_RTO, DUPLICATES_TO_LOSS = range(9)
CONSTANTS = 9
OWN_CONSTANTS = 3

NO_THRESHOLD = 1e18
"""A slow start threshold that is never reached."""


@dataclass(frozen=True)
class Tcp:
    """What NewReno, CUBIC and DCTCP have in common; the defaults are those of Linux hosts unless said otherwise."""

    initial_window: int = 10
    """Segments that may be out before the first acknowledgement (RFC 6928)."""
    buffer_segments: int = 256
    """Send and receive buffer: the most segments that may be out, and that a receiver holds out of order. The default,
    a quarter of a megabyte, fills 100 Gbps over round trips of 20 µs; longer ones need more."""
    slow_start_limit: int = 2
    """Segments by which one acknowledgement opens the window in slow start at most (L of RFC 3465); 1 is RFC 5681."""
    ack_every: int = 2
    """Segments that a receiver acknowledges together (RFC 5681); 1 acknowledges each."""
    ack_delay_s: float = 40e-3
    """How long a receiver waits for a second segment before it acknowledges one. ns-3 takes 200 ms."""
    min_rto_s: float = 200e-3
    """Least retransmission timeout. Data centres tune it down to 10 ms; RFC 6298 and ns-3 take 1 s."""
    max_rto_s: float = 60.0
    initial_rto_s: float | None = None
    """Timeout before the first round trip is measured. None: the least, as on a connection that was in use before."""
    duplicate_acks: int = 3
    """Duplicate acknowledgements that mean a loss. Raise it where packets of a flow overtake each other."""

    @property
    def numbers(self) -> int:
        return NUMBERS + OWN_NUMBERS

    @property
    def counts(self) -> int:
        return HELD_MAP + -(-self.buffer_segments // 64)

    @property
    def timers(self) -> int:
        return TIMERS

    @property
    def telemetry(self) -> bool:
        return False

    def own_constants(self) -> list[float]:
        """The constants of a flavour, at most `OWN_CONSTANTS`."""
        return []

    def constants(self) -> NDArray[np.float64]:
        first = self.min_rto_s if self.initial_rto_s is None else self.initial_rto_s
        shared = [
            self.initial_window, self.buffer_segments, self.slow_start_limit, self.ack_every,
            self.ack_delay_s * PS_PER_S, self.min_rto_s * PS_PER_S, self.max_rto_s * PS_PER_S,
            first * PS_PER_S, self.duplicate_acks,
        ]  # fmt: skip
        own = self.own_constants()
        return np.array(shared + own + [0.0] * (OWN_CONSTANTS - len(own)))

    def check(self, findings: Findings) -> None:
        for label, count in (
            ("initial window of TCP", self.initial_window), ("buffer of TCP", self.buffer_segments),
            ("limit of an opening in slow start", self.slow_start_limit),
        ):  # fmt: skip
            if not 1 <= count <= 2**20:
                findings.add(f"the {label} is {count} segments: give 1 to {2**20}")
        if self.initial_window > self.buffer_segments:
            findings.add(
                f"the initial window of {self.initial_window} segments does not fit into the buffer of "
                f"{self.buffer_segments}: enlarge the buffer"
            )
        if not 1 <= self.ack_every <= 64:
            findings.add(f"a receiver of TCP acknowledges every {self.ack_every} segments: give 1 to 64, such as 2")
        if not 1 <= self.duplicate_acks <= 1024:
            findings.add(f"a loss takes {self.duplicate_acks} duplicate acknowledgements: give 1 to 1024, such as 3")
        if not 1e-9 <= self.ack_delay_s <= 1e3:
            findings.add(f"acknowledgements are delayed by {self.ack_delay_s} s: give 1ns to 1000s, such as 40ms")
        if not 1e-9 <= self.min_rto_s <= self.max_rto_s <= 1e5:
            findings.add(
                f"the retransmission timeout lies between {self.min_rto_s} s and {self.max_rto_s} s: "
                "give a positive least and a greatest that is not below it"
            )
        if self.initial_rto_s is not None and not 1e-9 <= self.initial_rto_s <= 1e5:
            findings.add(
                f"the initial retransmission timeout is {self.initial_rto_s} s: give a positive time, such as 200ms"
            )
