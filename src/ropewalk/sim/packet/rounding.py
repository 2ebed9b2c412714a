"""How long bytes take on a wire: exactly to the picosecond, or truncated to whole nanoseconds as ns-3 does it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.world import NEVER, TRUNCATE, World

PS_PER_S = 10**12


def picoseconds(seconds: float) -> int:
    """Seconds as the nearest whole number of picoseconds."""
    return round(Fraction(float(seconds)) * PS_PER_S)


def wire_times(speeds: NDArray[np.float64], most_bytes: int, *, truncate_ns: bool) -> NDArray[np.int64]:
    """Picoseconds that 0 … `most_bytes` bytes take at each speed (bytes/s).

    With `truncate_ns` the seconds are a double, cut to whole nanoseconds: 60 bytes at 40 Gbps, 12 ns in truth, take 11.
    """
    rows = []
    for speed in speeds:
        exact = Fraction(float(speed))
        if truncate_ns:
            rate = float(speed) * 8
            row = [math.floor(Fraction(size * 8 / rate) * 10**9) * 1000 for size in range(most_bytes + 1)]
        else:
            row = [round(Fraction(size * PS_PER_S) / exact) for size in range(most_bytes + 1)]
        rows.append(row)
    return np.array(rows, np.int64).reshape(len(speeds), most_bytes + 1)


@kernel
def spacing(world: World, size: int, rate: float) -> np.int64:
    """Picoseconds between the starts of two packets of this size at a rate in bytes/s."""
    time = size * 1e12 / rate
    if time >= 4e18:
        return NEVER
    if world.knobs[TRUNCATE] == 1:
        return np.int64(time / 1000.0) * 1000
    return np.int64(time + 0.5)
