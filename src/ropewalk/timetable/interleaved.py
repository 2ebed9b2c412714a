"""1F1B over several pieces of the model on each device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import StrategyError
from ropewalk.timetable.table import Pass, Timetable
from ropewalk.timetable.warm_up import check_size


def side_by_side(devices: int, micro_batches: int, pieces_each: int = 1) -> Timetable:
    """1F1B with forward and backward passes overlap: one communicates with experts while the other computes.

    Megatron-Core's overlap of expert communication (2025): one more micro-batch is in flight than under 1F1B, over any
    number of pieces on each device.

    >>> print(side_by_side(1, 3))
    1f1b-overlap: 1 devices, 1 pieces, 3 micro-batches
    0  0F0 0F1+0B0 0F2+0B1 0B2
    """
    return interleaved(devices, micro_batches, pieces_each, paired=True)


def interleaved(devices: int, micro_batches: int, pieces_each: int = 2, *, paired: bool = False) -> Timetable:
    """Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM, 2021.

    Device d holds pieces d, d + p, d + 2p, …; micro-batches pass through them in groups. Megatron-LM wants groups of p;
    here, as in PyTorch's `ScheduleInterleaved1F1B`, micro-batches have to divide evenly into max(1, m // p) groups of
    at least p (or all of them). One group of p alternates like all others, as in both frameworks today; early
    versions of Megatron-LM ran all its forward passes first. `paired`: as in `side_by_side`.

    >>> print(interleaved(2, 2))
    interleaved: 2 devices, 4 pieces, 2 micro-batches
    0  0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1
    1  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1
    """
    name = "1f1b-overlap" if paired else "interleaved"
    check_size(name, devices, micro_batches)
    if pieces_each < 1:
        raise StrategyError(f"timetable {name}: devices hold {pieces_each} pieces: give 1 or more")
    groups = max(1, micro_batches // devices) if pieces_each > 1 else 1
    if micro_batches % groups:
        raise StrategyError(
            f"timetable {name}: {micro_batches} micro-batches do not divide into {groups} equal groups for "
            f"{devices} devices: use a multiple of {devices}"
        )
    size = micro_batches // groups
    group, within = np.divmod(np.arange(micro_batches * pieces_each), size * pieces_each)
    turn, place = np.divmod(within, size)
    number, many = group * size + place, micro_batches * pieces_each
    device = np.arange(devices)[:, None]
    forward, backward = turn * devices + device, (pieces_each - 1 - turn) * devices + device
    ahead = np.minimum((pieces_each - 1) * size + 2 * (devices - 1 - device) + paired, many)
    # Forward pass k stands behind k - ahead backward passes, backward pass k behind ahead + k + 1 forward ones.
    turns = np.arange(many)
    at = np.hstack([turns + np.maximum(turns - ahead, 0), turns + np.minimum(ahead + turns + 1, many)])
    at += device * 2 * many

    def laid(ahead: NDArray[Any], back: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
        column = np.empty(2 * many * devices, dtype)
        column[at] = np.hstack([np.broadcast_to(ahead, (devices, many)), np.broadcast_to(back, (devices, many))])
        return column

    return Timetable(
        name=name,
        row_start=np.arange(devices + 1) * 2 * many,
        kind=laid(np.array(Pass.FORWARD), np.array(Pass.BACKWARD), np.int8),
        piece=laid(forward, backward, np.int32),
        micro_batch=laid(number, number, np.int32),
        paired=laid((turns >= ahead) & paired, np.array(False), np.bool_),
        device_of_piece=np.arange(devices * pieces_each, dtype=np.int32) % devices,
        micro_batches=micro_batches,
    )
