"""Which gradients to sum together: fewer start-ups against waiting for the last one of a group.

PACE's second half (Bao et al., INFOCOM 2020): with the best preemptive order as the judge of a grouping, a dynamic
program grows groups along the order in which gradients are ready. What a grouping is worth does not add up over its
groups, so the program finds good groupings, not always the best. With `arrival` groups are chosen for streamed tensors
too.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.overlap._fusion import grown_groups
from ropewalk.overlap.groups import Arrival, Groups, costs_of
from ropewalk.overlap.heads_tails import Sums
from ropewalk.overlap.link import Link


@dataclass(frozen=True)
class Fusion:
    """A grouping and what the judge says of it: seconds of a step in which sums may be put aside at no cost."""

    groups: Groups
    value_s: float


def fuse(
    sums: Sums,
    link: Link,
    arrival: Arrival = Arrival.TOGETHER,
    *,
    rounds_s: float = 0.0,
    widest: int | None = None,
) -> Fusion:
    """Good groups by the dynamic program; no group has more than `widest` tensors.

    O(n²) groupings are judged, or n · `widest`: a fraction of a second for a hundred tensors, minutes for thousands.
    """
    order = sums.in_ready_order
    value, ends = grown_groups(
        sums.head_s[order],
        sums.size_bytes[order],
        sums.tail_s[order],
        len(sums) if widest is None else widest,
        sums.computing_s,
        costs_of(link, arrival, rounds_s),
    )
    return Fusion(Groups.cut(order, ends), float(value))
