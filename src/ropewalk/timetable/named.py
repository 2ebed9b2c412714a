"""Timetables by the names that people type."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from ropewalk.errors import StrategyError
from ropewalk.timetable.dual_pipe import dual_pipe, dual_pipe_v
from ropewalk.timetable.early_backward import early_backward
from ropewalk.timetable.gpipe import gpipe
from ropewalk.timetable.interleaved import interleaved
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.v_shape import zero_bubble_v
from ropewalk.timetable.zero_bubble import zero_bubble_h1, zero_bubble_h2


class Named(NamedTuple):
    """A timetable that needs to know devices, micro-batches and pieces of a device alone."""

    make: Callable[..., Timetable]
    """Of devices and micro-batches; where `any_pieces`, of pieces of a device as well."""
    pieces_each: int
    """Into how many pieces for each device the model is cut, unless said otherwise."""
    splits_backward: bool
    """Does it need gradients of weights apart from those of inputs?"""
    what: str
    copies: int = 1
    """How many copies of the model devices keep."""
    any_pieces: bool = False
    """May a device hold another number of pieces?"""


TIMETABLES: dict[str, Named] = {
    "gpipe": Named(gpipe, 1, False, "all forward passes, then all backward passes"),
    "1f1b": Named(early_backward, 1, False, "early backward, as few micro-batches under way as there are stages ahead"),
    "1f1b-deep": Named(
        partial(early_backward, deep=True), 1, False, "early backward, with hand-overs under way as well"
    ),
    "interleaved": Named(interleaved, 2, False, "early backward over several pieces a device", any_pieces=True),
    "zb-h1": Named(zero_bubble_h1, 1, True, "gradients of weights put off, at the memory of 1f1b"),
    "zb-h2": Named(zero_bubble_h2, 1, True, "gradients of weights put off, at twice the memory"),
    "zb-v": Named(zero_bubble_v, 2, True, "gradients of weights put off, two pieces a device in a V"),
    "dualpipe": Named(dual_pipe, 1, True, "micro-batches from both ends of two copies, passes side by side", copies=2),
    "dualpipev": Named(dual_pipe_v, 2, True, "two pieces a device in a V, passes side by side"),
}


@lru_cache(maxsize=256)
def timetable(name: str, devices: int, micro_batches: int, pieces_each: int | None = None) -> Timetable:
    """The timetable of that name; `pieces_each` is for those that let devices hold any number of pieces.

    >>> timetable("zb-v", 4, 8).pieces
    8
    >>> timetable("interleaved", 4, 8, 3).pieces
    12
    """
    if name not in TIMETABLES:
        raise StrategyError(f"there is no timetable {name!r}: take one of {', '.join(TIMETABLES)}")
    named = TIMETABLES[name]
    if pieces_each is None or pieces_each == named.pieces_each:
        return named.make(devices, micro_batches)
    if not named.any_pieces:
        raise StrategyError(
            f"timetable {name}: devices hold {pieces_each} pieces: {name} has {named.pieces_each} on each, leave it out"
        )
    return named.make(devices, micro_batches, pieces_each)
