"""Switches as TCP meets them: no pauses, queues that drop what comes when they are full, marks above one length."""

from __future__ import annotations

from ropewalk.sim.packet.settings import SwitchSettings

_ALL_OF_IT = 0
"""The shift of a buffer of which one queue may take all that is free, up to its own limit."""


def drop_tail(queue_packets: int, wire_bytes: int = 1048, *, mark_above_packets: int | None = None) -> SwitchSettings:
    """Every port has a queue of so many packets of its own and drops the rest; DCTCP wants marks above K packets.

    >>> switch = drop_tail(100, mark_above_packets=65)
    >>> switch.pause, switch.queue_limit_bytes, switch.kmin_bytes, switch.pmax
    (False, 104800, 68120, 1.0)
    """
    marks = mark_above_packets is not None
    threshold = mark_above_packets * wire_bytes if mark_above_packets is not None else None
    return SwitchSettings(
        pause=False,
        # A buffer so large that only the queue's own limit counts: 4096 ports could fill their queues at once.
        buffer_bytes=max(queue_packets, 1) * wire_bytes * 4096,
        alpha_shift=_ALL_OF_IT,
        queue_limit_bytes=queue_packets * wire_bytes,
        mark=marks,
        kmin_bytes=threshold,
        kmax_bytes=threshold,
        pmax=1.0,
    )
