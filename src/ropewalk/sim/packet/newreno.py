"""NewReno: one segment more for each round trip, half as much after a loss (RFC 5681, RFC 6582)."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.tcp_columns import CWND, Tcp
from ropewalk.sim.packet.transport import NEWRENO
from ropewalk.sim.packet.world import World


@dataclass(frozen=True)
class NewReno(Tcp):
    """TCP NewReno.

    >>> NewReno().name, NewReno(min_rto_s=10e-3).timers
    ('newreno', 2)
    """

    @property
    def name(self) -> str:
        return "newreno"

    @property
    def code(self) -> int:
        return NEWRENO


@kernel
def avoid_congestion(world: World, flow: int, segments: float) -> None:
    """An acknowledgement of some segments beyond slow start: a window of them opens it by one."""
    numbers = world.numbers[flow]
    numbers[CWND] += segments / numbers[CWND]


@kernel
def after_loss(flight: float) -> float:
    """The slow start threshold after a loss with so many segments out."""
    return max(flight / 2, 2.0)
