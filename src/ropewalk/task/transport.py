"""What sending costs beyond bytes over wires: starting up, rounds, wire that carries no payload, adding up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.mixer import FREE, Mixer, MixPlace
from ropewalk.errors import Findings, GraphError


@dataclass(frozen=True)
class Transport:
    """How collectives and sends use the wires, inside a server and across servers.

    >>> Transport(efficiency_inside=0.8).wire_bytes(np.array([True, False])).tolist()
    [1.25, 1.0]
    """

    start_up_s: float = 0.0
    """Seconds before the first byte of every collective and every send: launching the kernel, the handshake."""
    round_inside_s: float = 0.0
    """Seconds that each round between GPUs of one server takes on top of its bytes (α)."""
    round_across_s: float = 0.0
    """The same for rounds in which something crosses from server to server; a send is one round."""
    efficiency_inside: float = 1.0
    """Payload in a byte on the wire inside a server: headers and flags of the protocol are the rest. What is
    transferred grows by its inverse, so that links name themselves as bottlenecks and flows share a wire by it."""
    efficiency_across: float = 1.0
    cap_inside: float = math.inf
    """Bytes/s on the wire that one transfer inside a server never exceeds, however idle the links are."""
    cap_across: float = math.inf
    mixer: Mixer = FREE
    """Who adds up what reductions bring. Where rounds flow together, sending and adding overlap, and a collective takes
    the longer of the two; where they are written out, every piece is added before it is sent on."""

    def __post_init__(self) -> None:
        findings = Findings(GraphError, "transport")
        for name in ("start_up_s", "round_inside_s", "round_across_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                findings.add(f"{name} is {getattr(self, name)}: give seconds, 0 or more")
        for name in ("efficiency_inside", "efficiency_across"):
            if not 0 < getattr(self, name) <= 1:
                findings.add(f"{name} is {getattr(self, name)}: give a fraction above 0 and at most 1")
        for name in ("cap_inside", "cap_across"):
            if not getattr(self, name) > 0:
                findings.add(f"{name} is {getattr(self, name)}: give bytes/s above 0, or leave it out for no cap")
        if self.mixer.place is MixPlace.NETWORK:
            findings.add(
                "these collectives reduce on ranks, not in switches: leave network out, as in --mix 5GB/s, or use "
                "`ropewalk collective --in-network` or `ropewalk overlap --through in-network`"
            )
        findings.raise_if_any()

    def on(self, arriving: float, mode: str) -> Transport:
        """The same where ranks receive at most `arriving` bytes/s: an adder that keeps up beside them costs nothing.

        >>> Transport(mixer=Mixer(1.4e12)).on(450e9, "fluid").mixer.free
        True
        """
        return replace(self, mixer=FREE) if mode == "fluid" and self.mixer.arriving >= arriving else self

    def rounds_s(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """α of each transfer."""
        return np.where(inside, self.round_inside_s, self.round_across_s)

    def wire_bytes(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Bytes on the wire for a byte of payload, of each transfer."""
        return np.where(inside, 1 / self.efficiency_inside, 1 / self.efficiency_across)

    def caps(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(inside, self.cap_inside, self.cap_across)
