"""All-to-all at the optimum: the paths of every pair that load a fabric least, and the programs that use them."""

from ropewalk.collectives.all_to_all.decompose import best_paths
from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.all_to_all.pieces import in_pieces
from ropewalk.collectives.all_to_all.schedule import all_to_all_schedule, direct_schedule, relayed_schedule

__all__ = [
    "PairPaths",
    "all_to_all_schedule",
    "best_paths",
    "direct_schedule",
    "in_pieces",
    "relayed_schedule",
]
