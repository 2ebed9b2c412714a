"""Lanes of a forest: the arrows of each strand, or of a strand up and a strand down, and the round each begins in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from ropewalk.collectives.forest.strands import TreeStrand


class Arrow(NamedTuple):
    """What one host sends another, segment after segment."""

    src: int
    dst: int
    first_round: int
    """The round in which the first segment goes."""
    adds: bool
    """Whether the receiver adds what arrives to its own; otherwise it overwrites."""


@dataclass(frozen=True)
class Lane:
    """Part of a forest through which `rate` bytes/s pass, from or to (or to and from) one root."""

    root: int
    rate: Fraction
    arrows: tuple[Arrow, ...]


def lanes_of(
    reducing: Sequence[TreeStrand], spreading: Sequence[TreeStrand], roots: Sequence[int], members: Sequence[int]
) -> list[Lane]:
    """A lane for every strand; where there are some of both kinds, for every pair of one up and one down.

    Lanes stand in the order of their roots. Hosts that are not members have nothing of their own to add to.
    """
    contributors = set(members)
    ups, downs = _by_root(reducing), _by_root(spreading)
    lanes = []
    for root in roots:
        if reducing and spreading:
            pairs = _pairs(ups.get(root, []), downs.get(root, []))
            lanes += [_lane(up, down, contributors) for up, down in pairs]
        else:
            lanes += [_lane(up, None, contributors) for up in ups.get(root, [])]
            lanes += [_lane(None, down, contributors) for down in downs.get(root, [])]
    return lanes


def _by_root(strands: Sequence[TreeStrand]) -> dict[int, list[TreeStrand]]:
    found: dict[int, list[TreeStrand]] = {}
    for strand in strands:
        found.setdefault(strand.root, []).append(strand)
    return found


def _pairs(ups: Iterable[TreeStrand], downs: Iterable[TreeStrand]) -> list[tuple[TreeStrand, TreeStrand]]:
    """Strands up and down of one root, cut so that they carry the same; deep ones go with shallow ones."""
    left_up = sorted(ups, key=_depth)
    left_down = sorted(downs, key=_depth, reverse=True)
    pairs = []
    while left_up and left_down:
        up, down = left_up.pop(), left_down.pop()
        rate = min(up.rate, down.rate)
        pairs.append((replace(up, rate=rate), replace(down, rate=rate)))
        for strand, rest in ((up, left_up), (down, left_down)):
            if strand.rate > rate:
                rest.append(replace(strand, rate=strand.rate - rate))
    return pairs


def _depth(strand: TreeStrand) -> int:
    depth = {strand.root: 0}
    for parent, child in strand.arcs:
        depth[child] = depth[parent] + 1
    return max(depth.values())


def _lane(up: TreeStrand | None, down: TreeStrand | None, contributors: set[int]) -> Lane:
    strand = up or down
    assert strand is not None
    arrows: list[Arrow] = []
    turn = _climb(up, contributors, arrows) if up is not None else 0
    if down is not None:
        _descend(down, turn, arrows)
    return Lane(strand.root, strand.rate, tuple(arrows))


Arriving = dict[int, list[tuple[int, int, int]]]
"""By receiver: the round in which each sender could send, its place in the order in which the tree grew, the sender."""


def _climb(up: TreeStrand, contributors: set[int], arrows: list[Arrow]) -> int:
    """The arrows towards the root, each as early as it can be; the round in which the root has it all."""
    arriving: Arriving = {}
    for place in reversed(range(len(up.arcs))):
        parent, child = up.arcs[place]
        arriving.setdefault(parent, []).append((_gather(child, arriving, contributors, arrows), place, child))
    return _gather(up.root, arriving, contributors, arrows)


def _gather(host: int, arriving: Arriving, contributors: set[int], arrows: list[Arrow]) -> int:
    """Let a host receive from all that send to it; the round in which it can send on."""
    ready = earliest = 0
    for begins, _, child in sorted(arriving.get(host, ())):
        # A relay has nothing of its own to add to: the first to arrive overwrites, a round before all others add.
        overwrites = host not in contributors and ready == 0
        begins = max(begins, earliest)
        if overwrites:
            earliest = begins + 1
        arrows.append(Arrow(child, host, begins, adds=not overwrites))
        ready = max(ready, begins + 1)
    return ready


def _descend(down: TreeStrand, turn: int, arrows: list[Arrow]) -> None:
    begins = {down.root: turn}
    for parent, child in down.arcs:
        begins[child] = begins[parent] + 1
        arrows.append(Arrow(parent, child, begins[parent], adds=False))
