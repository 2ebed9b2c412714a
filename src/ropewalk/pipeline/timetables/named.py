"""Timetables by the names that people type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ropewalk.errors import StrategyError
from ropewalk.pipeline.timetable import Timetable
from ropewalk.pipeline.timetables.dual_pipe import dual_pipe, dual_pipe_v
from ropewalk.pipeline.timetables.early_backward import early_backward
from ropewalk.pipeline.timetables.gpipe import gpipe
from ropewalk.pipeline.timetables.interleaved import interleaved
from ropewalk.pipeline.timetables.v_shape import zero_bubble_v
from ropewalk.pipeline.timetables.zero_bubble import zero_bubble_h1, zero_bubble_h2


class Named(NamedTuple):
    """A timetable that needs to know devices and micro-batches alone."""

    make: Callable[[int, int], Timetable]
    pieces_each: int
    """Into how many pieces for each device the model is cut."""
    splits_backward: bool
    """Does it need gradients of weights apart from those of inputs?"""
    what: str


TIMETABLES: dict[str, Named] = {
    "gpipe": Named(gpipe, 1, False, "all forward passes, then all backward passes"),
    "1f1b": Named(early_backward, 1, False, "early backward, as few micro-batches under way as there are stages ahead"),
    "1f1b-deep": Named(
        partial(early_backward, deep=True), 1, False, "early backward, with hand-overs under way as well"
    ),
    "interleaved": Named(interleaved, 2, False, "early backward over two pieces a device, in turn"),
    "zb-h1": Named(zero_bubble_h1, 1, True, "gradients of weights put off, at the memory of 1f1b"),
    "zb-h2": Named(zero_bubble_h2, 1, True, "gradients of weights put off, at twice the memory"),
    "zb-v": Named(zero_bubble_v, 2, True, "gradients of weights put off, two pieces a device in a V"),
    "dualpipe": Named(dual_pipe, 1, True, "micro-batches from both ends, two copies of the model, passes side by side"),
    "dualpipev": Named(dual_pipe_v, 2, True, "two pieces a device in a V, passes side by side"),
}


def timetable(name: str, devices: int, micro_batches: int) -> Timetable:
    """The timetable of that name.

    >>> timetable("zb-v", 4, 8).pieces
    8
    """
    if name not in TIMETABLES:
        raise StrategyError(f"there is no timetable {name!r}: take one of {', '.join(TIMETABLES)}")
    return TIMETABLES[name].make(devices, micro_batches)
