"""A closed form: how long one all-reduce takes, as bytes over the hottest link plus a fixed cost for each round.

The unit is T = P/B: P bytes of parameters over B bytes/s of one link in one direction (links are full duplex). The
fixed cost α is charged once for each round on the critical path, that is once for each wave of transfers, however
many hops a transfer takes; latency of hops is not in a closed form.

Editions: `exact` is the load of the hottest link, derived and checked by counting; `paper` is the form as it was
printed, given only where it differs; `counted` has no formula and is the same sum counted link by link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric import Fabric

Edition = Literal["exact", "paper", "counted"]


@dataclass(frozen=True)
class ClosedForm:
    """`bandwidth_term` · P/B + `rounds` · α.

    >>> form = ClosedForm(Fraction(15, 16), 4, "exact", "2(N-1)/(kN) · P/B + 2kα")
    >>> round(form.seconds(64e6, 5e9, 10e-6) * 1e3, 4)
    12.04
    """

    bandwidth_term: Fraction
    rounds: int
    edition: Edition
    formula: str
    note: str = ""
    is_bound: bool = False
    """True: the routing in use can only be slower than this, never faster."""

    def seconds(self, size_bytes: float, bandwidth: float, alpha_s: float = 0.0) -> float:
        """Seconds for `size_bytes` over links of `bandwidth` bytes/s when every round costs `alpha_s` besides."""
        return float(self.bandwidth_term) * size_bytes / bandwidth + self.rounds * alpha_s

    def with_note(self, note: str) -> ClosedForm:
        return replace(self, note=f"{self.note}; {note}" if self.note else note)

    def as_bound(self, note: str) -> ClosedForm:
        return replace(self.with_note(note), is_bound=True)


Derivation = Callable[[Any, str], ClosedForm | None]
"""(builder record, routing) -> the exact form, or None where no formula is known.

The routing is one of those that spread load evenly on that fabric, by name, or "hashed" for any that puts a transfer on
one shortest path; the form is then the one without collisions, marked as a bound unless none can happen.
"""

HASHED = "lower bound: per-flow hashing adds collisions"


def exact(bandwidth_term: Fraction | int, rounds: int, formula: str, note: str = "") -> ClosedForm:
    return ClosedForm(Fraction(bandwidth_term), rounds, "exact", formula, note)


def written(term: str, rounds: str) -> str:
    """The formula as people write it: `2(N-1)/N · P/B + 2α`."""
    return f"{term} · P/B + {rounds}α"


def nearest_fraction(value: float) -> Fraction:
    """The fraction that a sum of shares or a ratio of bandwidths stands for: 1/3, not its 53 binary digits."""
    near = Fraction(value).limit_denominator(10**6)
    return near if abs(float(near) - value) <= 1e-12 * max(1.0, abs(value)) else Fraction(value)


def bandwidth_bound(fabric: Fabric, size_bytes: float) -> float:
    """Seconds that no all-reduce over all hosts of the fabric can beat, whatever its algorithm, routes and latency.

    Every byte of the buffer takes at least N-1 sends to be summed and N-1 to be spread, so all hosts together send
    and receive 2(N-1)P; and every host sends its own P and receives P. With equal hosts of c links this is
    2(N-1)/N · P/(cB).
    """
    if fabric.hosts < 2:
        return 0.0
    sent, received = fabric.host_bandwidth(), receiving_bandwidth(fabric)
    if min(sent.min(), received.min()) <= 0:
        idle = int(np.argmin(np.minimum(sent, received)))
        raise FabricError(
            f"fabric {fabric.name}: host {fabric.node_names[idle]} has no link in one direction, "
            "so no all-reduce over all hosts can end: connect it"
        )
    together = 2 * (fabric.hosts - 1) / min(sent.sum(), received.sum())
    alone = 1 / min(sent.min(), received.min())
    return float(size_bytes * max(together, alone))


def receiving_bandwidth(fabric: Fabric) -> NDArray[np.float64]:
    """Bytes/s that each host can receive, over all its links."""
    into = fabric.link_dst < fabric.hosts
    total = np.bincount(fabric.link_dst[into], weights=fabric.bandwidth[into], minlength=fabric.hosts)
    return total.astype(np.float64)
