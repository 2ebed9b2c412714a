"""Transports of the packet level by the names that people type, each with packets and switches that suit it.

RDMA runs over lossless switches, TCP over lossy ones. Kernels are imported when a transport is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ropewalk.choices import Choice, Choices
from ropewalk.errors import GraphError
from ropewalk.palette import AMBER, BLUE, BROWN, GREEN, NAVY, PURPLE, RED, SKY

if TYPE_CHECKING:
    from ropewalk.sim.packet.settings import PacketSettings
    from ropewalk.sim.packet.transport import TransportSettings

QUEUE_PACKETS = 1000
"""What a port holds under TCP unless said otherwise; about a megabyte."""

MARK_ABOVE_PACKETS = 65
"""K of DCTCP: what its paper gives for 10 Gbps, and round trips of microseconds need no more at 40."""

TCP_HEADER_BYTES = 58
"""Ethernet with its checksum 18, IP 20, TCP 20."""

TCP_ACK_BYTES = 64
"""The shortest Ethernet frame."""

TELEMETRY_HEADER_BYTES = 90
"""Telemetry of five ports takes 42 bytes of a packet."""


def rdma() -> PacketSettings:
    from ropewalk.sim.packet.dcqcn import Dcqcn

    return _lossless(Dcqcn())


def rdma_paper() -> PacketSettings:
    from ropewalk.sim.packet.dcqcn_paper import DcqcnPaper

    return _lossless(DcqcnPaper())


def rdma_pfc() -> PacketSettings:
    from ropewalk.sim.packet.roce import Roce

    return _lossless(Roce())


def hpcc() -> PacketSettings:
    from ropewalk.sim.packet.hpcc import Hpcc

    return replace(_lossless(Hpcc()), header_bytes=TELEMETRY_HEADER_BYTES)


def cubic() -> PacketSettings:
    from ropewalk.sim.packet.cubic import Cubic

    return _tcp(Cubic())


def newreno() -> PacketSettings:
    from ropewalk.sim.packet.newreno import NewReno

    return _tcp(NewReno())


def dctcp() -> PacketSettings:
    from ropewalk.sim.packet.dctcp import Dctcp

    return _tcp(Dctcp(), MARK_ABOVE_PACKETS)


def _lossless(transport: TransportSettings) -> PacketSettings:
    from ropewalk.sim.packet.settings import PacketSettings

    return PacketSettings(transport)


def _tcp(transport: TransportSettings, mark_above_packets: int | None = None) -> PacketSettings:
    from ropewalk.sim.packet.lossy import drop_tail
    from ropewalk.sim.packet.settings import PacketSettings

    base = PacketSettings(transport, header_bytes=TCP_HEADER_BYTES, ack_bytes=TCP_ACK_BYTES, ack_in_control_class=False)
    return replace(base, switch=drop_tail(QUEUE_PACKETS, base.wire_bytes, mark_above_packets=mark_above_packets))


TransportChoice = Choice[Callable[[], "PacketSettings"]]
LOSSLESS, LOSSY = "lossless switches that pause senders", "lossy switches"

TRANSPORTS: Choices[TransportChoice] = Choices(
    "transport",
    (
        Choice("rdma", rdma, "RoCEv2 with DCQCN as NICs run it", where=LOSSLESS, colour=RED),
        Choice("rdma-paper", rdma_paper, "RoCEv2 with DCQCN as published", where=LOSSLESS, colour=PURPLE),
        Choice(
            "rdma-pfc", rdma_pfc, "RoCEv2 at line rate, with pauses but no rate control", where=LOSSLESS, colour=AMBER
        ),
        Choice("hpcc", hpcc, "RoCEv2 with HPCC: rates from telemetry in every packet", where=LOSSLESS, colour=GREEN),
        Choice("tcp", cubic, "TCP as Linux runs it: CUBIC", where=LOSSY, colour=BLUE),
        Choice("cubic", cubic, "TCP with CUBIC, the same as tcp", where=LOSSY, colour=SKY),
        Choice("newreno", newreno, "TCP with NewReno", where=LOSSY, colour=BROWN),
        Choice("dctcp", dctcp, "TCP with DCTCP: windows follow the share of marked packets", where=LOSSY, colour=NAVY),
    ),
    error=GraphError,
)
"""All transports. Adding one is a file that keeps the contract of `sim.packet.transport` and a line here."""


def settings_named(name: str) -> PacketSettings:
    """The settings of a transport by its name.

    >>> settings_named("dctcp").switch.pause
    False
    >>> sorted(TRANSPORTS)
    ['cubic', 'dctcp', 'hpcc', 'newreno', 'rdma', 'rdma-paper', 'rdma-pfc', 'tcp']
    """
    return TRANSPORTS.named(name).make()
