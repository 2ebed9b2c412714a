"""Breadth-first broadcast: collectives in the fewest rounds, and on regular fabrics at full bandwidth too."""

from ropewalk.collectives.breadth_first.broadcast import BroadcastRounds, broadcast
from ropewalk.collectives.breadth_first.neighbours import Neighbours, neighbours_of
from ropewalk.collectives.breadth_first.schedule import bfb_schedule

__all__ = ["BroadcastRounds", "Neighbours", "bfb_schedule", "broadcast", "neighbours_of"]
