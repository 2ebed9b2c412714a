"""What to compare: logical topologies, fabrics, sizes, levels, transports, as the user asked for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.sim.level import PacketOptions
from ropewalk.sim.level.choose import MOST_EVENTS
from ropewalk.sync.levels import PACKET_LEVELS

DEFAULT_LEVELS = ("closed", "flow")
LEVELS = (*DEFAULT_LEVELS, *PACKET_LEVELS)
DEFAULT_LOGICAL = ("ps", "mesh", "ring", "halving-doubling", "hips")
DEFAULT_PHYSICAL = ("fat-tree", "leaf-spine", "bcube", "torus", "switch")


@dataclass(frozen=True)
class SyncQuestion:
    """What to compare, as the user asked for it."""

    logical: tuple[str, ...] = DEFAULT_LOGICAL
    physical: tuple[str, ...] = DEFAULT_PHYSICAL
    hosts: tuple[int, ...] = (64,)
    sizes: tuple[int, ...] = (575_000_000,)
    bandwidths: tuple[float, ...] = (5e9,)
    start_up_s: float = 10e-6
    hop_latency_s: float = 0.0
    levels: tuple[str, ...] = DEFAULT_LEVELS
    routing: tuple[str, ...] = ("default",)
    seed: int = 0
    symmetry: bool = True
    nearest: bool = False
    transports: tuple[str, ...] = ("rdma",)
    """Whose packets: of levels `wire`, `packet` and `auto`."""
    packet: PacketOptions = field(default_factory=PacketOptions)
    most_events: float = MOST_EVENTS
    """Events that a packet-level run may take."""
    mixer: Mixer = FREE
    """Who adds up what the reducing rounds bring."""
    axes: tuple[int, ...] | Literal["all"] | None = None
    """k: families with axes get so many equal ones, n^k hosts; `all` is every k of which n is whole, None the usual
    shape of each family."""

    @property
    def packet_levels(self) -> tuple[str, ...]:
        return tuple(level for level in self.levels if level in PACKET_LEVELS)

    @property
    def simulates(self) -> bool:
        return any(level != "closed" for level in self.levels)
