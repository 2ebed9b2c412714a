"""A schedule: a program, the hosts its ranks run on, and the ways its sends take through the fabric.

Whatever makes a collective for a fabric (forests, breadth-first broadcasts, rings …) ends in a `Schedule`; whatever
uses one (the simulator, the exporters, the executor) begins with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Program
from ropewalk.routing import Routes


@dataclass(frozen=True, eq=False)
class Schedule:
    """A program on a fabric."""

    name: str
    """What made it, as users write it: forest, breadth-first, ring …"""
    program: Program
    hosts: NDArray[np.int32]
    """The host of the fabric on which each rank runs."""
    routes: Routes
    """The ways between all pairs of hosts that send to each other."""
    promise: Fraction | float | None = None
    """Bytes/s that buffers of any size approach, where it is known without a simulation."""
