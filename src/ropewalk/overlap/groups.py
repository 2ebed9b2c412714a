"""Groups of tensors that are summed together, and how the tensors of a group arrive.

A fused group starts up once, when its last gradient exists. Fused the plain way, no tensor of a group is there before
all of them are. Streamed, they arrive one after the other, the most urgent first: `Arrival.GATHERED` reduces the whole
group and then gathers it tensor by tensor, `Arrival.THROUGH` takes every tensor through both halves in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import Findings, GraphError
from ropewalk.overlap._fusion import GroupCosts
from ropewalk.overlap.link import Link


class Arrival(Enum):
    """The share of a group's bytes that must have moved before its first tensor can be there."""

    TOGETHER = 1.0
    """All tensors arrive at the end."""
    GATHERED = 0.5
    """The reduce-scatter of all comes first; the all-gather hands out tensor after tensor."""
    THROUGH = 0.0
    """One tensor after the other, in one launch."""


@dataclass(frozen=True)
class Groups:
    """Which tensors are summed together: groups in the order in which they are ready, tensors by number.

    >>> Groups.cut([2, 1, 0], [2, 3]).members
    ((2, 1), (0,))
    """

    members: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        findings = Findings(GraphError, "groups of tensors")
        listed = [tensor for group in self.members for tensor in group]
        if sorted(listed) != list(range(len(listed))):
            findings.add(f"tensors {sorted(listed)[:8]}… are not 0…{len(listed) - 1}: list every tensor exactly once")
        if not all(self.members):
            findings.add("a group is empty: leave it out")
        findings.raise_if_any()

    def __len__(self) -> int:
        return len(self.members)

    @property
    def tensors(self) -> int:
        return sum(map(len, self.members))

    @classmethod
    def cut(cls, order: Sequence[int] | Ints, ends: Sequence[int] | Ints) -> Groups:
        """Tensors in the given order, cut behind the positions `ends`."""
        tensors = [int(tensor) for tensor in order]
        begins = [0, *(int(end) for end in ends)]
        return cls(tuple(tuple(tensors[begin:end]) for begin, end in zip(begins, map(int, ends), strict=False)))

    @classmethod
    def singles(cls, order: Sequence[int] | Ints) -> Groups:
        """Every tensor on its own."""
        return cls(tuple((int(tensor),) for tensor in order))

    @classmethod
    def one(cls, order: Sequence[int] | Ints) -> Groups:
        """All tensors together."""
        return cls((tuple(int(tensor) for tensor in order),))

    def by_ready(self, head_s: NDArray[np.float64]) -> Groups:
        """The same groups in the order in which their last tensors are ready."""
        return Groups(tuple(sorted(self.members, key=lambda group: float(head_s[list(group)].max()))))

    @cached_property
    def order(self) -> Ints:
        """All tensors, group after group."""
        return np.array([tensor for group in self.members for tensor in group], np.int64)

    @cached_property
    def ends(self) -> Ints:
        """Where in `order` each group ends."""
        return np.cumsum([len(group) for group in self.members])

    @cached_property
    def group_of(self) -> Ints:
        """By tensor."""
        group = np.empty(self.tensors, np.int64)
        group[self.order] = np.repeat(np.arange(len(self)), [len(members) for members in self.members])
        return group


def costs_of(link: Link, arrival: Arrival, rounds_s: float = 0.0) -> GroupCosts:
    """What groups cost on a link of whose start-up `rounds_s` are the rounds of the collective.

    Launching is paid once for a group. Its rounds are paid again by every tensor that moves on its own, in the halves
    in which it does.
    """
    check_one_resource(link, rounds_s)
    seconds_per_byte, held_back = 1.0 / link.throughput, float(arrival.value)
    if arrival is Arrival.GATHERED and link.mixed < inf:
        # Nothing is gathered while the group is reduced, so what mixing takes beyond sending is waited for.
        scatter, gather = link.half_seconds(1.0)
        return GroupCosts(
            link.start_up_s, scatter + gather, scatter / (scatter + gather), rounds_s * float(arrival.value)
        )
    return GroupCosts(link.start_up_s, seconds_per_byte, held_back, (1.0 - held_back) * rounds_s)


def check_one_resource(link: Link, rounds_s: float) -> None:
    """Refuse what is no all-reduce on one resource, and rounds that are longer than the start-up they are part of."""
    if link.duplex:
        raise GraphError(
            "pushes and pulls of a parameter server are two resources, but fused sums need one: give an all-reduce link"
        )
    if not 0 <= rounds_s <= link.start_up_s:
        raise GraphError(
            f"rounds of {rounds_s:g} s are not a part of the start-up of {link.start_up_s:g} s: give 0 up to that"
        )
