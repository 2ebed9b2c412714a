"""Timetables by the names that people type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from ropewalk.choices import Choice, Choices
from ropewalk.errors import StrategyError
from ropewalk.palette import AMBER, BLUE, BROWN, GREEN, GREY, NAVY, PINK, PURPLE, RED, RUST, SKY
from ropewalk.timetable.automatic import automatic
from ropewalk.timetable.dual_pipe import dual_pipe, dual_pipe_v
from ropewalk.timetable.early_backward import early_backward
from ropewalk.timetable.gpipe import gpipe
from ropewalk.timetable.interleaved import interleaved, side_by_side
from ropewalk.timetable.stage_times import stage_times
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.v_shape import zero_bubble_v
from ropewalk.timetable.zero_bubble import zero_bubble_h1, zero_bubble_h2


@dataclass(frozen=True, kw_only=True)
class TimetableChoice(Choice[Callable[..., Timetable]]):
    """A timetable that needs to know devices, micro-batches and pieces per device alone.

    `make` takes devices and micro-batches; where `any_pieces`, pieces per device as well.
    """

    where: str = "pipelines of any depth"
    pieces_each: int = 1
    """Into how many pieces for each device the model is cut, unless said otherwise."""
    splits_backward: bool = False
    """Does it need gradients of weights apart from those of inputs?"""
    side_by_side: bool = False
    """Do a forward and a backward pass run side by side?"""
    copies: int = 1
    """How many copies of the model devices keep."""
    any_pieces: bool = False
    """May a device hold another number of pieces?"""
    fitted: bool = False
    """Do planners make it for the times of a plan? By name alone it is made for equal passes."""
    searched: bool = True
    """Do planners try it unless told otherwise?"""
    within_memory: bool = False
    """Does it run fewer forward passes ahead where memory holds fewer?"""


def _for_equal_passes(devices: int, micro_batches: int) -> Timetable:
    return automatic(stage_times(1, 1, 1, pieces=devices), micro_batches).timetable


TIMETABLES = Choices(
    "schedule",
    (
        TimetableChoice("1f1b", early_backward, "early backward, as few micro-batches in flight as stages remain",
                        title="1F1B (P_A)", colour=BLUE, within_memory=True),
        TimetableChoice("1f1b-deep", partial(early_backward, deep=True), "early backward, more in flight to cover "
                        "transfers between stages", title="deep 1F1B (P_B)", colour=NAVY, within_memory=True),
        TimetableChoice("gpipe", gpipe, "all forward passes, then all backward passes", title="GPipe", colour=GREY),
        TimetableChoice("zb-h1", zero_bubble_h1, "weight gradients deferred, at the memory of 1f1b", title="ZB-H1",
                        colour=AMBER, splits_backward=True),
        TimetableChoice("zb-h2", zero_bubble_h2, "weight gradients deferred, at twice the memory", title="ZB-H2",
                        colour=RUST, splits_backward=True),
        TimetableChoice("interleaved", interleaved, "early backward over several chunks per device",
                        where="pipelines of 2 or more, micro-batches in equal groups", title="interleaved 1F1B",
                        colour=GREEN, pieces_each=2, any_pieces=True),
        TimetableChoice("1f1b-overlap", side_by_side, "forward and backward passes overlap: one communicates with "
                        "experts while the other computes", title="1F1B, overlapping passes", colour=BROWN,
                        where="pipelines of any depth, also of one stage",
                        side_by_side=True, any_pieces=True),
        TimetableChoice("zb-v", zero_bubble_v, "weight gradients deferred, two chunks per device in a V",
                        where="pipelines of 2 or more", title="ZB-V", colour=PINK, pieces_each=2, splits_backward=True),
        TimetableChoice("zb-auto", _for_equal_passes, "weight gradients deferred, the best order for the times of a "
                        "plan", title="built for the given times, 1F1B's memory", colour=RED, splits_backward=True,
                        fitted=True),
        TimetableChoice("dualpipe", dual_pipe, "micro-batches from both ends of two model copies, overlapping passes",
                        where="even pipelines, an even number of micro-batches, 2 or more per device",
                        title="DualPipe", colour=PURPLE, splits_backward=True, side_by_side=True, copies=2,
                        searched=False),
        TimetableChoice("dualpipev", dual_pipe_v, "two chunks per device in a V, overlapping passes",
                        where="pipelines of 2 or more, 2 or more micro-batches per device", title="DualPipeV",
                        colour=SKY, pieces_each=2, splits_backward=True, side_by_side=True, searched=False),
    ),
    error=StrategyError,
)  # fmt: skip
"""All timetables, in the order in which planners try them. Adding one is a file that makes it and a line here."""


@lru_cache(maxsize=256)
def timetable(name: str, devices: int, micro_batches: int, pieces_each: int | None = None) -> Timetable:
    """The timetable of that name; `pieces_each` is for those that let devices hold any number of pieces.

    >>> timetable("zb-v", 4, 8).pieces
    8
    >>> timetable("interleaved", 4, 8, 3).pieces
    12
    """
    named = TIMETABLES.named(name)
    if pieces_each is None or pieces_each == named.pieces_each:
        return named.make(devices, micro_batches)
    if not named.any_pieces:
        raise StrategyError(
            f"timetable {name}: devices hold {pieces_each} pieces: {name} has {named.pieces_each} on each, leave it out"
        )
    return named.make(devices, micro_batches, pieces_each)
