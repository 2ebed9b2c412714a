"""How a transport plugs in: the contract between the engine and everything that decides when a flow may send.

CONTRACT. The engine moves packets; a transport is a set of compiled functions that it calls, and a frozen record of
settings that says how much memory they need. `deliver.py` holds the one place where the engine turns the code of a
transport into a call: a transport is added by a file of its own, a code below, and one branch in each of the five
functions there. All functions take the whole state of the run, `world` (see `world.py`), and work by side effects.

What the engine does by itself: paths, hashing and spraying; queues, pause frames, marks, drops and telemetry; the
round robin of a host's port among its flows that may send; sequence numbers of what is sent; completion of tasks.

*When a flow may send.* `flow = world.flows[f]` has `size`, `sent` (next new byte), `acked` (all before it has
arrived), `window` (bytes that may be out: `sent - acked < window`), `next_send` (picoseconds; not before), and `resend`
(offset of one packet that goes out before anything else and whatever the window says, or -1). A transport sets these
in the functions below, and nowhere else. Going back N is `flow.sent = flow.acked`.
Packets carry `flow.payload` bytes (the last one what is left) and `world.knobs[HEADER]` bytes of headers.

The five functions, `f` being a flow and `p` a packet:

    begin(world, f)             the flow starts now: set `rate` (bytes/s), `window`; columns are zero
    on_sent(world, f, p)        p has just been put on the wire: set `next_send` (default: stays), arm timers
    on_data(world, f, p) -> int p reached the receiver. Update `flow.received` (all before it is here). Return
                                  REPLY   p goes back as an acknowledgement: its `seq` (bytes received in order),
                                          `kind` (ACK or NACK) and `mark` (the congestion echo) are set here
                                  SILENT  no answer, p is freed
    on_ack(world, f, p)         p (ACK or NACK) reached the sender: set `acked`, `window`, `rate`, `sent`, `resend`,
                                `next_send`. The engine frees p, ends the flow when `acked >= size`, wakes it otherwise
    on_timer(world, f, which)   timer `which` (0 … timers-1) of the flow ran out; the engine wakes the flow afterwards

Helpers for transports, in `helpers.py`: `now(world)`, `arm(world, f, which, time)` (sets or moves a timer),
`reply(world, f)` (allocates and sends an ACK from the receiver, for delayed
acknowledgements), and in `rounding.py` `spacing(world, size, rate)` (picoseconds of `size` bytes at a rate).

Own state of a transport are columns by flow: `world.numbers[f, i]` (float64) and `world.counts[f, i]` (int64); the
settings record says how many. Its constants are `world.constants[i]` (float64), from `TransportSettings.constants()`.
A transport that gives up waiting and sends again counts it in `flow.timeouts`.
A packet has `seq`, `payload`, `size`, `kind`, `mark` (1: congestion experienced, or its echo), `stamp` (picoseconds of
sending; an ACK that was turned round keeps it, so `now - stamp` is the round trip), `again` (1: a retransmission).
Telemetry: where settings ask for it, `world.telemetry[p, hop]` holds (picoseconds, bytes sent by the port so far,
bytes queued, bytes/s) of each switch port passed, `packet.passed` of them; ACKs that were turned round keep it.

Rules: nothing allocates, nothing reads a clock, all randomness is `helpers.random(world)`; a transport never touches
queues or links. `tests/unit/sim/packet/test_transport_contract.py` is one validator over all transports.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings

PFC_ONLY, DCQCN, DCQCN_PAPER, NEWRENO, CUBIC, DCTCP, HPCC = range(7)
"""Codes of the transports, as the engine switches on them."""

SILENT, REPLY = 0, 1
"""What `on_data` answers."""


@runtime_checkable
class TransportSettings(Protocol):
    """A frozen record: one transport with its constants."""

    @property
    def name(self) -> str:
        """As people type it: `dcqcn`, `cubic`."""
        ...

    @property
    def code(self) -> int: ...

    @property
    def numbers(self) -> int:
        """Float columns by flow."""
        ...

    @property
    def counts(self) -> int:
        """Integer columns by flow."""
        ...

    @property
    def timers(self) -> int:
        """Timers by flow."""
        ...

    @property
    def telemetry(self) -> bool:
        """Whether switches write telemetry into packets."""
        ...

    def constants(self) -> NDArray[np.float64]: ...

    def check(self, findings: Findings) -> None:
        """Add what is impossible about the constants, each with its remedy."""
        ...
