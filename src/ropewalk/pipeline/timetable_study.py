"""How timetables compare as communication grows, and what they keep as micro-batches grow: rows for charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.timetable.automatic import automatic
from ropewalk.timetable.clock import StageTimes, run, stage_times
from ropewalk.timetable.named import TIMETABLES, timetable

COMPARED = ("gpipe", "1f1b", "1f1b-deep", "zb-h1", "zb-h2", "zb-v")
RATIOS = tuple(k / 10 for k in range(13))


@dataclass(frozen=True)
class CommunicationRow:
    """One timetable at one ratio of communication to compute."""

    timetable: str
    ratio: float
    """A hand-over there and back, over the forward and backward pass of a stage."""
    makespan: float
    """Over that of the same compute without bubble and communication."""
    bubble: float
    peak_live: float
    """Micro-batches' worth of activations of a stage on the fullest device."""


@dataclass(frozen=True)
class MemoryRow:
    """One timetable at one number of micro-batches."""

    timetable: str
    micro_batches: int
    peak_live: float
    """Micro-batches' worth of activations of a stage on the fullest device."""
    copies: int
    """Copies of the model that the devices keep."""


def communication_study(
    devices: int,
    micro_batches: int,
    *,
    ratios: Iterable[float] = RATIOS,
    names: Iterable[str] = COMPARED,
    forward: float = 1.0,
    backward: float = 1.0,
    weight: float = 1.0,
) -> list[CommunicationRow]:
    """Equal stages, hand-overs that take `ratio` of a stage there and back; `zb-auto` at the memory of 1F1B beside."""
    rows = []
    ideal = micro_batches * (forward + backward + weight)
    chosen = list(names)
    for ratio in ratios:
        send = ratio * (forward + backward + weight) / 2
        for name in chosen:
            each = TIMETABLES[name].pieces_each
            seen = run(timetable(name, devices, micro_batches), _equal(devices, each, forward, backward, weight, send))
            rows.append(
                CommunicationRow(name, ratio, seen.makespan / ideal, seen.bubble, _fullest(seen.peak_live, each))
            )
        best = automatic(_equal(devices, 1, forward, backward, weight, send), micro_batches)
        rows.append(CommunicationRow("zb-auto", ratio, best.makespan / ideal, best.bubble, _fullest(best.peak_live, 1)))
    return rows


def memory_study(devices: int, micro_batches: Iterable[int], *, names: Iterable[str] = COMPARED) -> list[MemoryRow]:
    """What the fullest device keeps: everything with GPipe, as much as the pipeline is deep with the others."""
    chosen = list(names)
    rows = []
    for count in micro_batches:
        for name in chosen:
            table = timetable(name, devices, count)
            rows.append(MemoryRow(name, count, _fullest(table.peak_live, TIMETABLES[name].pieces_each), table.copies))
    return rows


def _equal(devices: int, each: int, forward: float, backward: float, weight: float, send: float) -> StageTimes:
    """A stage cut into `each` equal pieces; every hand-over carries as much as that of a whole stage."""
    return stage_times(forward / each, backward / each, weight / each, send, pieces=devices * each)


def _fullest(live: NDArray[np.int64], each: int) -> float:
    return float(live.max()) / each
