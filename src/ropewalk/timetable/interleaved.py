"""1F1B over several pieces of the model on each device."""

from __future__ import annotations

import numpy as np

from ropewalk.errors import StrategyError
from ropewalk.timetable.table import Entry, Pass, Timetable, from_rows
from ropewalk.timetable.warm_up import check_size


def interleaved(devices: int, micro_batches: int, pieces_each: int = 2) -> Timetable:
    """Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM, 2021.

    Device d holds pieces d, d + p, d + 2p, …; micro-batches pass through them in groups. Megatron-LM wants groups of p;
    here, as in PyTorch's `ScheduleInterleaved1F1B`, micro-batches have to divide evenly into max(1, m // p) groups of
    at least p (or all of them). One group of p alternates like all others, as in both frameworks today; early
    versions of Megatron-LM ran all its forward passes first.

    >>> print(interleaved(2, 2))
    interleaved: 2 devices, 4 pieces, 2 micro-batches
    0  0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1
    1  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1
    """
    check_size("interleaved", devices, micro_batches)
    if pieces_each < 1:
        raise StrategyError(f"timetable interleaved: devices hold {pieces_each} pieces: give 1 or more")
    groups = max(1, micro_batches // devices)
    if micro_batches % groups:
        raise StrategyError(
            f"timetable interleaved: {micro_batches} micro-batches do not divide into {groups} equal groups for "
            f"{devices} devices: take a multiple of {devices}"
        )
    size = micro_batches // groups
    group, within = np.divmod(np.arange(micro_batches * pieces_each), size * pieces_each)
    turn, place = np.divmod(within, size)
    number = (group * size + place).tolist()
    rows = []
    for device in range(devices):
        forward = (turn * devices + device).tolist()
        backward = ((pieces_each - 1 - turn) * devices + device).tolist()
        ahead = min((pieces_each - 1) * size + 2 * (devices - 1 - device), len(number))
        row = [Entry(Pass.FORWARD, forward[k], number[k]) for k in range(ahead)]
        for k in range(len(number)):
            if ahead + k < len(number):
                row.append(Entry(Pass.FORWARD, forward[ahead + k], number[ahead + k]))
            row.append(Entry(Pass.BACKWARD, backward[k], number[k]))
        rows.append(row)
    homes = [piece % devices for piece in range(devices * pieces_each)]
    return from_rows("interleaved", rows, homes, micro_batches)
