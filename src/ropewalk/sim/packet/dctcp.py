"""DCTCP: the window shrinks by the part of its bytes that met a queue above the marking threshold (RFC 8257).

Switches mark every packet above one queue length K: give `kmin_bytes = kmax_bytes = K`, see `lossy.py`. After a loss
DCTCP halves like NewReno.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.tcp_columns import CONSTANTS, COUNTS, CWND, NUMBERS, RECOVERING, SSTHRESH, Tcp
from ropewalk.sim.packet.transport import DCTCP
from ropewalk.sim.packet.world import World

ALPHA = NUMBERS
# The end of the window over which marks are counted, bytes acknowledged and marked in it, and where the last cut ends.
WINDOW_END, ACKED, MARKED, CUT_UP_TO = range(COUNTS, COUNTS + 4)
GAIN, FIRST_ALPHA = range(CONSTANTS, CONSTANTS + 2)


@dataclass(frozen=True)
class Dctcp(Tcp):
    """Data Center TCP.

    >>> Dctcp().name, Dctcp().gain
    ('dctcp', 0.0625)
    """

    gain: float = 1 / 16
    """How much the marks of one window count in the estimate."""
    first_alpha: float = 1.0
    """The estimate before the first window is over: the first mark halves."""

    @property
    def name(self) -> str:
        return "dctcp"

    @property
    def code(self) -> int:
        return DCTCP

    def own_constants(self) -> list[float]:
        return [self.gain, self.first_alpha]

    def check(self, findings: Findings) -> None:
        super().check(findings)
        if not 0 < self.gain <= 1:
            findings.add(f"the gain of DCTCP is {self.gain}: give a number above 0 and up to 1, such as 1/16")
        if not 0 <= self.first_alpha <= 1:
            findings.add(f"the first alpha of DCTCP is {self.first_alpha}: give a fraction such as 0.9")


@kernel
def begin(world: World, flow: int) -> None:
    world.numbers[flow, ALPHA] = world.constants[FIRST_ALPHA]
    world.counts[flow, CUT_UP_TO] = -1


@kernel
def count_marks(world: World, flow: int, newly_acked: int, marked: bool) -> bool:
    """Learn from an acknowledgement, cut once a window where it echoes a mark. Says whether the window may open."""
    state = world.flows[flow]
    numbers, counts = world.numbers[flow], world.counts[flow]
    counts[ACKED] += newly_acked
    if marked:
        counts[MARKED] += newly_acked
    if state.acked > counts[WINDOW_END]:
        if counts[ACKED] > 0:
            gain = world.constants[GAIN]
            numbers[ALPHA] = (1 - gain) * numbers[ALPHA] + gain * counts[MARKED] / counts[ACKED]
        counts[ACKED] = 0
        counts[MARKED] = 0
        counts[WINDOW_END] = state.sent
    if state.acked <= counts[CUT_UP_TO]:
        return False
    if not marked:
        return True
    if counts[RECOVERING] == 0:
        # Not below two segments: a receiver that delays acknowledgements would keep a lone one waiting.
        numbers[CWND] = max(numbers[CWND] * (1 - numbers[ALPHA] / 2), 2.0)
        numbers[SSTHRESH] = numbers[CWND]
        counts[CUT_UP_TO] = state.sent
    return False
