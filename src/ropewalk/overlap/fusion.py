"""Which gradients to sum together: fewer start-ups against waiting for the last one of a group.

PACE's second half (Bao et al., INFOCOM 2020): with the best preemptive order as the judge of a grouping, a dynamic
program grows groups along the order in which gradients are ready. What a grouping is worth does not add up over its
groups, so the program finds good groupings, not always the best; up to 20 tensors `fuse_exactly` looks at all of them.
Both take `arrival`, so that groups can be chosen for streamed tensors too.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import GraphError
from ropewalk.overlap._fusion import best_groups, grown_groups, judged, room_for
from ropewalk.overlap.groups import Arrival, Groups, costs_of
from ropewalk.overlap.heads_tails import Sums
from ropewalk.overlap.link import Link

MOST_EXACT = 20
"""Tensors of which all groupings are looked at: half a million."""


@dataclass(frozen=True)
class Fusion:
    """A grouping and what the judge says of it: seconds of a step in which sums may be put aside at no cost."""

    groups: Groups
    value_s: float


def judge(sums: Sums, link: Link, groups: Groups, arrival: Arrival = Arrival.TOGETHER, rounds_s: float = 0.0) -> float:
    """Seconds of a step with this grouping under the best preemptive order, start-ups once for each group.

    >>> from ropewalk.overlap.heads_tails import one_stream_sums
    >>> from ropewalk.overlap.tensors import from_layers
    >>> sums = one_stream_sums(from_layers([1] * 4, backward_s=[1] * 4, forward_s=[1] * 4))
    >>> link = Link(bandwidth=1, start_up_s=1)
    >>> judge(sums, link, Groups.singles(range(4)[::-1])), judge(sums, link, Groups.one(range(4)))
    (10.0, 13.0)
    """
    if groups.tensors != len(sums):
        raise GraphError(f"{groups.tensors} tensors are grouped, but there are {len(sums)}: list every tensor once")
    ordered = groups.by_ready(sums.head_s)
    columns = (sums.head_s[ordered.order], sums.size_bytes[ordered.order], sums.tail_s[ordered.order])
    costs = costs_of(link, arrival, rounds_s)
    value, _, _ = judged(*columns, ordered.ends, len(ordered), costs, room_for(len(sums)))
    return max(float(value), sums.computing_s)


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


def fuse_exactly(sums: Sums, link: Link, arrival: Arrival = Arrival.TOGETHER, *, rounds_s: float = 0.0) -> Fusion:
    """The best groups of all that keep tensors in the order in which they are ready."""
    if len(sums) > MOST_EXACT:
        raise GraphError(
            f"{len(sums)} tensors have 2^{len(sums) - 1} groupings: use fuse, which judges some of them, "
            f"or give {MOST_EXACT} tensors or fewer"
        )
    order = sums.in_ready_order
    value, ends = best_groups(
        sums.head_s[order],
        sums.size_bytes[order],
        sums.tail_s[order],
        sums.computing_s,
        costs_of(link, arrival, rounds_s),
    )
    return Fusion(Groups.cut(order, ends), float(value))
