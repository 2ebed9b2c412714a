"""Transports by the names that people type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ropewalk.errors import GraphError
from ropewalk.sim.packet.cubic import Cubic
from ropewalk.sim.packet.dcqcn import Dcqcn
from ropewalk.sim.packet.dcqcn_paper import DcqcnPaper
from ropewalk.sim.packet.dctcp import Dctcp
from ropewalk.sim.packet.hpcc import Hpcc
from ropewalk.sim.packet.lossy import drop_tail
from ropewalk.sim.packet.newreno import NewReno
from ropewalk.sim.packet.roce import Roce
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


def _rdma(transport: TransportSettings) -> PacketSettings:
    return PacketSettings(transport)


def _telemetry(transport: TransportSettings) -> PacketSettings:
    """Telemetry of five ports takes 42 bytes of a packet."""
    return PacketSettings(transport, header_bytes=90)


def _tcp(transport: TransportSettings, mark_above_packets: int | None = None) -> PacketSettings:
    base = PacketSettings(transport, header_bytes=TCP_HEADER_BYTES, ack_bytes=TCP_ACK_BYTES, ack_in_control_class=False)
    return replace(base, switch=drop_tail(QUEUE_PACKETS, base.wire_bytes, mark_above_packets=mark_above_packets))


TRANSPORTS: Mapping[str, Callable[[], PacketSettings]] = MappingProxyType(
    {
        "rdma": lambda: _rdma(Dcqcn()),
        "rdma-paper": lambda: _rdma(DcqcnPaper()),
        "rdma-pfc": lambda: _rdma(Roce()),
        "hpcc": lambda: _telemetry(Hpcc()),
        "tcp": lambda: _tcp(Cubic()),
        "cubic": lambda: _tcp(Cubic()),
        "newreno": lambda: _tcp(NewReno()),
        "dctcp": lambda: _tcp(Dctcp(), MARK_ABOVE_PACKETS),
    }
)
"""Each with packets and switches that suit it: RDMA over lossless ones, TCP over lossy ones. `tcp` is CUBIC."""


def settings_named(name: str) -> PacketSettings:
    """The settings of a transport by its name.

    >>> settings_named("dctcp").switch.pause
    False
    >>> sorted(TRANSPORTS)
    ['cubic', 'dctcp', 'hpcc', 'newreno', 'rdma', 'rdma-paper', 'rdma-pfc', 'tcp']
    """
    if name not in TRANSPORTS:
        raise GraphError(f"no transport is called {name!r}: use one of {', '.join(TRANSPORTS)}")
    return TRANSPORTS[name]()
