"""Exact symmetry of rounds in lockstep, found on the rolled-up rounds: one colour for each slot, arrow and link.

If slots, arrows and links are coloured so that equal slots send and receive equal arrows in every kind of round, and
equal links carry equal arrows, then (round, colour) is an equitable partition of the rounds written out, however many
there are. The quotient is again rounds in lockstep, between classes of slots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Words
from ropewalk.errors import GraphError
from ropewalk.routing import Routes
from ropewalk.sim.flow.classes import first_member, number, usage_of_classes
from ropewalk.sim.flow.system import System
from ropewalk.task import Lockstep, write_out
from ropewalk.task.lockstep import MOST_TASKS, Ends


class _Rolled:
    """All arrows of all kinds in one set of columns, with the links that each uses."""

    def __init__(self, rounds: Lockstep, routes: Routes) -> None:
        arrows = rounds.arrows
        self.slots = rounds.slots
        self.kind = np.repeat(np.arange(len(arrows)), [one.transfers for one in arrows])
        self.src = np.concatenate([one.src_slot for one in arrows])
        self.dst = np.concatenate([one.dst_slot for one in arrows])
        self.size = np.concatenate([one.size_bytes for one in arrows])
        self.added_s = rounds.added_s()
        self.pair = routes.find(*rounds.all_pairs())
        self.use_start, self.use_link, self.use_weight = routes.usage()
        self.capacity = routes.fabric.bandwidth
        self.delay = rounds.start_up_s + routes.latency()[self.pair]


def fold_rounds(rounds: Lockstep, routes: Routes) -> System:
    """The quotient of rounds in lockstep over the partition that colour refinement finds."""
    if not rounds.arrows:
        raise GraphError(f"{rounds.name}: there is nothing to send")
    rolled = _Rolled(rounds, routes)
    arrow, slot, link = _refined(rolled, seed=1)
    arrow_class, slot_class, link_class = number(arrow), number(slot), number(link)
    _confirm(rolled, arrow_class, slot_class, link_class)
    return _quotient(rounds, rolled, arrow_class, slot_class, link_class)


def _refined(rolled: _Rolled, seed: int) -> tuple[Words, Words, Words]:

    arrow, slot, link = _first_colours(rolled, seed)
    classes = -1
    while True:
        arrow, slot, link = _sweep(rolled, arrow, slot, link)
        found = sum(len(np.unique(colour)) for colour in (arrow, slot, link))
        if found == classes:
            return arrow, slot, link
        classes = found


def _first_colours(rolled: _Rolled, seed: int) -> tuple[Words, Words, Words]:
    """What arrows, slots and links are by themselves."""
    from ropewalk.sim.flow import colours

    arrow = colours.mix(np.full(len(rolled.src), seed, np.uint64), rolled.kind.astype(np.uint64))
    for column in (rolled.size, rolled.delay, rolled.added_s):
        arrow = colours.mix(arrow, colours.bits(column))
    link = colours.mix(np.full(len(rolled.capacity), seed, np.uint64), colours.bits(rolled.capacity))
    return arrow, np.full(rolled.slots, seed, np.uint64), link


def _sweep(rolled: _Rolled, arrow: Words, slot: Words, link: Words) -> tuple[Words, Words, Words]:
    """Tell arrows apart by their ends and links, slots by their arrows, links by what they carry."""
    from ropewalk.sim.flow import colours

    weight = colours.bits(rolled.use_weight)
    route = np.empty(len(rolled.use_start) - 1, np.uint64)
    colours.colour_rows(rolled.use_start, rolled.use_link, weight, link, route)
    arrow = colours.mix(arrow, colours.mix(colours.mix(slot[rolled.src], slot[rolled.dst]), route[rolled.pair]))
    out, into = np.zeros(rolled.slots, np.uint64), np.zeros(rolled.slots, np.uint64)
    colours.sum_by_row(rolled.src, arrow, out)
    colours.sum_by_row(rolled.dst, arrow, into)
    on_route = np.zeros(len(route), np.uint64)
    colours.sum_by_row(rolled.pair, arrow, on_route)
    on_link = np.zeros(len(link), np.uint64)
    colours.colour_links(rolled.use_start, rolled.use_link, weight, on_route, on_link)
    return arrow, colours.mix(slot, colours.mix(out, into)), colours.mix(link, on_link)


def _confirm(rolled: _Rolled, arrow_class: Ints, slot_class: Ints, link_class: Ints) -> None:
    """One more sweep under other hashes must not split any class."""
    from ropewalk.sim.flow import colours

    classes = (arrow_class, slot_class, link_class)
    first = _first_colours(rolled, seed=2)
    salted = [colours.mix(own, one.astype(np.uint64)) for own, one in zip(first, classes, strict=True)]
    again = _sweep(rolled, salted[0], salted[1], salted[2])
    for colour, numbers in zip(again, classes, strict=True):
        if len(np.unique(colour)) != int(numbers.max(initial=-1)) + 1:
            raise AssertionError("two colours collided: the partition is not equitable")


def _quotient(rounds: Lockstep, rolled: _Rolled, arrow_class: Ints, slot_class: Ints, link_class: Ints) -> System:
    arrow_of, link_of = first_member(arrow_class), first_member(link_class)
    # Arrow classes are numbered by first member, and kinds stand one after the other: each kind is a range.
    kind = rolled.kind[arrow_of]
    ends = [
        (slot_class[rolled.src[arrow_of[kind == one]]], slot_class[rolled.dst[arrow_of[kind == one]]])
        for one in range(len(rounds.arrows))
    ]
    usage = usage_of_classes(
        rolled.pair, arrow_class, len(arrow_of), rolled.use_start, rolled.use_link, rolled.use_weight, link_class
    )
    slots = int(slot_class.max()) + 1
    size, delay = rolled.size[arrow_of], rolled.delay[arrow_of]
    # Arrows of a class that one slot receives arrive together and are added up one after the other.
    alike = np.bincount(arrow_class) / np.bincount(slot_class)[slot_class[rolled.dst[arrow_of]]]
    added_s = rolled.added_s[arrow_of] * alike
    return system_of_classes(rounds, slots, ends, size, delay, added_s, usage, rolled.capacity[link_of])


def system_of_classes(
    rounds: Lockstep,
    slots: int,
    ends: list[Ends],
    size: NDArray[np.float64],
    delay: NDArray[np.float64],
    added_s: NDArray[np.float64],
    usage: tuple[Ints, NDArray[np.int32], NDArray[np.float64]],
    capacity: NDArray[np.float64],
) -> System:
    """Rounds between classes of slots: class of arrows i sends `size[i]` after `delay[i]` and uses row i of `usage`.

    The slots that receive it add it up in `added_s[i]`.
    """
    steps = write_out(slots, ends, rounds.order, added_s > 0)
    if len(steps.arrow) > MOST_TASKS:
        raise GraphError(f"{rounds.name}: {len(steps.arrow):.3g} classes of tasks do not fit: use fewer ranks")
    sends, adds, receiver = steps.sends, steps.adds, np.concatenate([dst for _, dst in ends])
    return System(
        steps.kind,
        np.where(adds, receiver[steps.arrow], steps.arrow),
        np.where(sends, size[steps.arrow], np.where(adds, added_s[steps.arrow], 0.0)),
        np.where(sends, delay[steps.arrow], 0.0),
        np.zeros(len(steps.arrow), np.int64),
        steps.dep_start,
        steps.dep.astype(np.int32),
        slots if adds.any() else 0,
        np.zeros(len(size), np.int64),
        np.full(len(size), np.inf),
        *usage,
        capacity,
    )
