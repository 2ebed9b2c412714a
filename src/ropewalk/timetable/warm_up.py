"""Rows of one piece a device: some forward passes first, then backward and forward passes in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.errors import Findings, StrategyError
from ropewalk.timetable.table import Pass, Timetable


def with_warm_up(name: str, ahead: Sequence[int], micro_batches: int) -> Timetable:
    """Device i runs `ahead[i]` forward passes, then one backward for each forward pass, then what is left."""
    check_size(name, len(ahead), micro_batches)
    numbers = np.arange(micro_batches)
    kinds, batches = [], []
    for first in ahead:
        # Forward k >= first stands behind backward k - first: sort by what a pass comes after.
        turn = np.concatenate((np.where(numbers < first, numbers - first, 2 * (numbers - first) + 1), 2 * numbers))
        order = np.argsort(turn, kind="stable")
        kinds.append(np.repeat((Pass.FORWARD, Pass.BACKWARD), micro_batches)[order])
        batches.append(np.tile(numbers, 2)[order])
    devices = len(ahead)
    return Timetable(
        name=name,
        row_start=np.arange(devices + 1, dtype=np.int64) * 2 * micro_batches,
        kind=np.concatenate(kinds).astype(np.int8),
        piece=np.repeat(np.arange(devices, dtype=np.int32), 2 * micro_batches),
        micro_batch=np.concatenate(batches).astype(np.int32),
        paired=np.zeros(2 * micro_batches * devices, np.bool_),
        device_of_piece=np.arange(devices, dtype=np.int32),
        micro_batches=micro_batches,
    )


def check_size(name: str, devices: int, micro_batches: int) -> None:
    """A pipeline has devices and micro-batches."""
    findings = Findings(StrategyError, f"timetable {name}")
    if devices < 1:
        findings.add(f"there are {devices} devices: give 1 or more")
    if micro_batches < 1:
        findings.add(f"there are {micro_batches} micro-batches: give 1 or more")
    findings.raise_if_any()
