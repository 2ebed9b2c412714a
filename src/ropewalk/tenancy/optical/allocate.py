"""OCS-vClos: a job that crosses leafs gets circuits of its own, set up for it; running jobs are never touched.

Stages: one leaf; two leafs joined straight; all circuits in one spine; whole leafs and spines; l × s with l doubled on
failure. A new job only gets fibres that are free.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, under_one_leaf
from ropewalk.tenancy.optical.clos import ClosShape, over_clos, over_whole_leafs, spine_room, virtual_leafs
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.fibres import FreeFibres, free_fibres, optical
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pods import allocate_over_pods
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.optical.star import around_one_spine
from ropewalk.tenancy.optical.straight import joined_straight
from ropewalk.tenancy.vclos.shapes import all_divisors, doubling


def ocs_vclos(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """Allocate by OCS-vClos, l × s in the published order.

    >>> from ropewalk.tenancy.plant import plant
    >>> state = Occupancy(OpticalPlant.of_plant(plant("leaf-spine:4x2x4x2", gpus_per_server=2)))
    >>> got = ocs_vclos(state, "a", 8)
    >>> got.stage, got.leafs, got.spines
    ('ocs', (0, 1), (2, 3, 4, 5))
    """
    if isinstance(state.plant, CoreOpticalPlant):
        return allocate_over_pods(state, job, gpus, doubling)
    return allocate(state, job, gpus)


def ocs_vclos_all_divisors(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """Allocate by OCS-vClos with every l that divides the job, fewest virtual leafs first."""
    if isinstance(state.plant, CoreOpticalPlant):
        return allocate_over_pods(state, job, gpus, all_divisors)
    return allocate(state, job, gpus, every_divisor=True)


def allocate(state: Occupancy, job: str, gpus: int, *, every_divisor: bool = False) -> Allocation | Waiting:
    """Try the stages in their order; the first that holds the job is taken."""
    plant = optical(state)
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    fibres = free_fibres(state)
    circuits = with_circuits(state, fibres, job, gpus, every_divisor)
    if isinstance(circuits, Allocation):
        return circuits
    never = not _fits_when_empty(plant, gpus, every_divisor)
    return _explained(state, fibres, gpus, every_divisor, circuits, never)


def with_circuits(
    state: Occupancy, fibres: FreeFibres, job: str, gpus: int, every_divisor: bool, *, straight: bool = True
) -> Allocation | ProgramUndecided | None:
    """Circuits for a job that no leaf holds; `straight`: also from leaf to leaf, without a spine."""
    placed = (
        (joined_straight(state, fibres, job, gpus) if straight else None)
        or around_one_spine(state, fibres, job, gpus)
        or over_whole_leafs(state, fibres, job, gpus)
    )
    if placed is not None:
        return placed
    undecided = None
    for shape in virtual_shapes(optical(state), gpus, every_divisor=every_divisor):
        clos = over_clos(state, fibres, job, shape)
        if isinstance(clos, Allocation):
            return clos
        undecided = undecided or clos
    return undecided


def virtual_shapes(plant: OpticalPlant, gpus: int, *, every_divisor: bool = False) -> Iterator[ClosShape]:
    """l from max(odd part, GPUs // GPUs of a leaf), doubling, or every divisor; whole servers on each virtual leaf.

    Virtual leafs may share a leaf, so there may be more of them than leafs.

    >>> from ropewalk.tenancy.plant import plant
    >>> published = OpticalPlant.of_plant(plant("leaf-spine:32x16x16", gpus_per_server=4))
    >>> [(shape.leafs, shape.width) for shape in virtual_shapes(published, 48)]
    [(3, 16), (6, 8), (12, 4)]
    """
    most = min(int(plant.gpus_per_leaf.max()), plant.switches)
    first = 2 if every_divisor else max(gpus // (gpus & -gpus), gpus // int(plant.gpus_per_leaf.max()))
    leafs = first
    while leafs * plant.gpus_per_server <= gpus:
        width, rest = divmod(gpus, leafs)
        if leafs > 1 and not rest and width % plant.gpus_per_server == 0 and width <= most:
            yield ClosShape(leafs, width)
        leafs = leafs + 1 if every_divisor else leafs * 2


def _explained(
    state: Occupancy,
    fibres: FreeFibres,
    gpus: int,
    every_divisor: bool,
    undecided: ProgramUndecided | None,
    never: bool,
) -> Waiting:
    """Why no circuits hold the job, with the spines that have no room for the shape that comes nearest."""
    nearest: tuple[int, ClosShape, tuple[int, ...]] | None = None
    for shape in virtual_shapes(optical(state), gpus, every_divisor=every_divisor):
        leafs = virtual_leafs(state, fibres, shape)
        if leafs is None:
            continue
        room = spine_room(fibres, leafs)
        missing = max(shape.width - int(room.sum()), 0)
        blocking = tuple(np.flatnonzero(room == 0).tolist())
        if nearest is None or (missing, len(blocking)) < (nearest[0], len(nearest[2])):
            nearest = missing, shape, blocking
    if nearest is None:
        text = (
            f"no two leafs can be connected, no spine has {gpus} ports free, and {gpus} GPUs have no other equal split"
        )
        text += " over idle servers" + ", even when all are idle" * never
        return Waiting(Reason.NETWORK_FRAGMENTATION, text, never=never)
    missing, shape, blocking = nearest
    fact = f"spines are short of {missing} virtual ones" if missing else "no choice of switches connects all of them"
    if undecided:
        fact += " that was tried, and the integer program was too large or stopped at its limit"
    text = f"{shape.leafs} virtual leafs of {shape.width} GPUs come closest: {fact}"
    return Waiting(Reason.NETWORK_FRAGMENTATION, text, blocking, never)


@lru_cache(maxsize=4096)
def _fits_when_empty(plant: OpticalPlant, gpus: int, every_divisor: bool) -> bool:
    empty = Occupancy(plant)
    if under_one_leaf(empty, "", gpus) is not None:
        return True
    return isinstance(with_circuits(empty, free_fibres(empty), "", gpus, every_divisor), Allocation)
