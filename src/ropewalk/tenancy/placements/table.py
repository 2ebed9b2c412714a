"""Every placement by name: how a job that shares links with others gets its servers."""

from __future__ import annotations

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError
from ropewalk.tenancy.placements.at_random import by_chance
from ropewalk.tenancy.placements.kueue import by_best_fit, by_least_free
from ropewalk.tenancy.placements.seated import seating
from ropewalk.tenancy.placements.slurm_tree import by_tree
from ropewalk.tenancy.placements.volcano import by_hypernodes
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.shared import gpus_only

PACKED = "packed"

PLACEMENTS = Choices[Choice[Allocate]](
    "placement",
    (
        Choice(PACKED, gpus_only, "the fullest leaf that holds the job, else the emptiest leafs and the fullest for "
               "the rest"),
        Choice("random", seating(by_chance), "idle servers at random"),
        Choice("slurm-tree", seating(by_tree), "Slurm's topology/tree: few close leafs, best "
               "fit"),
        Choice("kueue-best-fit", seating(by_best_fit), "Kueue, a leaf preferred: BestFit at every level"),
        Choice("kueue-least-free", seating(by_least_free), "Kueue, unconstrained: the fullest servers first, "
               "anywhere"),
        Choice("volcano", seating(by_hypernodes), "Volcano: the fullest HyperNode of the lowest tier that holds the "
               "job"),
    ),
    error=ClusterError,
)  # fmt: skip
"""Adding one is a function that chooses servers and a line here."""
