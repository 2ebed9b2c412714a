"""Servers at random: what a scheduler does that knows nothing about the network."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.placements.seated import GangRequest


def by_chance(state: Occupancy, asked: GangRequest) -> Ints:
    """Servers with room, drawn by the name of the job: the same job in the same state gets the same ones."""
    draw = np.random.default_rng(crc32(asked.job.encode()))
    return draw.permutation(np.flatnonzero(asked.room))[: asked.parts]
