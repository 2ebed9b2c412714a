"""Options about packets and switches, as `sync` and `simulate` share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.lists import split
from ropewalk.documents.numbers import finite
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.sim.level import LevelUse, PacketOptions

PACKETS = "Packets and switches (levels wire, packet and auto)"

TRANSPORT = typer.Option(
    "rdma", help="{transports}; `ropewalk list transports` describes them.", rich_help_panel=PACKETS
)
BUFFER = typer.Option(None, "--buffer", help="Shared buffer of every switch, such as 12MiB.", rich_help_panel=PACKETS)
PORT_QUEUE = typer.Option(
    None,
    "--port-queue",
    help="Queue limit of one port of a lossy switch (TCP), such as 100kB.",
    rich_help_panel=PACKETS,
)
ECN = typer.Option(
    None,
    "--ecn",
    metavar="KMIN,KMAX,PMAX",
    help="ECN marking, KMIN,KMAX,PMAX: 160kB,640kB,0.2.",
    rich_help_panel=PACKETS,
)
PAYLOAD = typer.Option(None, "--payload", help="Payload of a packet, such as 4096B.", rich_help_panel=PACKETS)
MIN_RTO = typer.Option(
    None, "--min-rto", help="Minimum retransmission timeout of TCP, such as 10ms.", rich_help_panel=PACKETS
)
SPREAD = typer.Option(
    None,
    "--spread",
    help="Multipath: hash (one path), split (one flow per path) or spray (packets round robin).",
    rich_help_panel=PACKETS,
)
MOST_EVENTS = typer.Option(
    1e9, "--most-events", min=1.0, help="Refuse packet-level runs with more events than this.", rich_help_panel=PACKETS
)

FLUID = {"closed", "flow", "wire"}
"""Levels that send no packets."""
OF_FORMAT = ("transport", "payload")
OF_RUNS = ("buffer", "port_queue", "ecn", "min_rto", "spread", "most_events")
"""Parameters of commands that count where packets have a format, and those that count only where they are sent."""


@dataclass(frozen=True)
class PacketChoices:
    """The options as typed; those left out stay as the transport has them."""

    transport: str
    buffer: str | None
    port_queue: str | None
    ecn: str | None
    payload: str | None
    min_rto: str | None
    spread: str | None
    most_events: float

    def use(self, level: str) -> LevelUse:
        """How finely to simulate, checked."""
        from ropewalk.sim.level import LevelUse

        use = LevelUse(level, self.transport, self.options(), self.most_events)
        use.check()
        return use

    def options(self) -> PacketOptions:
        from ropewalk.sim.level import PacketOptions

        return PacketOptions(
            buffer_bytes=None if self.buffer is None else units.size(self.buffer),
            queue_bytes=None if self.port_queue is None else units.size(self.port_queue),
            ecn=None if self.ecn is None else read_ecn(self.ecn),
            payload_bytes=None if self.payload is None else units.size(self.payload),
            min_rto_s=None if self.min_rto is None else units.seconds(self.min_rto),
            spread=self.spread,
        )


def read_ecn(text: str) -> tuple[float, float, float]:
    """`160kB,640kB,0.2`.

    >>> read_ecn("160kB,640kB,0.2")
    (160000.0, 640000.0, 0.2)
    """
    parts = split(text)
    if len(parts) != 3:
        raise InputError(f"--ecn {text!r} is not KMIN,KMAX,PMAX: write it like 160kB,640kB,0.2")
    try:
        pmax = finite(parts[2])
    except ValueError:
        raise InputError(f"Pmax {parts[2]!r} is not a number: write a probability such as 0.2") from None
    return float(units.size(parts[0])), float(units.size(parts[1])), pmax


def refuse_without_packets(context: typer.Context, levels: Sequence[str]) -> None:
    """Refuse options about packets that no level that was asked for knows."""
    if not set(levels) <= FLUID:
        return  # packets, or a name that will be refused as such
    idle = OF_RUNS if "wire" in levels else (*OF_FORMAT, *OF_RUNS)
    refuse(given(context, idle), "add --level packet, or leave it out")
