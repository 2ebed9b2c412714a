"""Notes of queues, pauses and received bytes at regular instants, never more than a few thousand of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.trace import PS, Samples

MOST_SAMPLES = 4096
"""When a run has more, every second one is dropped and the interval doubles: memory does not grow with time."""


class Sampler:
    """Takes a sample whenever the engine has run up to `next_at`."""

    def __init__(self, every_ps: int, fabric: Fabric) -> None:
        self.every_ps = every_ps
        self.next_at = every_ps
        self.fabric = fabric
        self._time: list[int] = []
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]] = []

    def take(self, world: w.World) -> None:
        self._note(world, self.next_at)
        if len(self._time) >= MOST_SAMPLES:
            self._time, self._rows = self._time[1::2], self._rows[1::2]
            self.every_ps *= 2
        self.next_at = self._time[-1] + self.every_ps

    def _note(self, world: w.World, time: int) -> None:
        classes = int(world.knobs[w.CLASSES])
        paused = np.asarray(world.queues["paused"].reshape(-1, classes).any(axis=1), np.bool_)
        received = world.received[: self.fabric.hosts].copy()
        self._time.append(time)
        self._rows.append((world.links["queued_bytes"].copy(), received, paused, world.links["sent_bytes"].copy()))

    def samples(self, world: w.World) -> Samples:
        """All samples, and a last one of the end of the run."""
        end = int(world.clock[w.NOW])
        if not self._time or self._time[-1] < end:
            self._note(world, end)
        queued, received, paused, sent = (np.array(column) for column in zip(*self._rows, strict=True))
        return Samples(np.array(self._time) * PS, queued, received, paused, sent)
