"""Which leafs × spines a job of N GPUs may take: l leafs with s = N / l GPUs each, and s spines.

Equal numbers on all leafs are what keeps every collective apart; N with a large odd part has few such shapes, and a
prime has none beyond a single leaf. Over p pods every pod takes a shape of N / p GPUs, which may be a single leaf. On
rails l counts units, and s the GPUs of a unit on each of its rails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ropewalk.tenancy.plant import Plant

Shape = tuple[int, int]
"""(leafs, spines)."""
Shapes = Callable[[Plant, int], Iterator[Shape]]
"""In which order shapes are tried for a number of GPUs in one pod; the first that fits is taken."""


def doubling(plant: Plant, gpus: int) -> Iterator[Shape]:
    """The published order: l doubles from max(odd part of N, N // GPUs per leaf). Not every divisor is tried.

    >>> from ropewalk.tenancy.plant import plant
    >>> list(doubling(plant("leaf-spine:64x32x32", gpus_per_server=4), 48))
    [(3, 16), (6, 8), (12, 4)]
    """
    odd_part = gpus // (gpus & -gpus)
    leafs = max(odd_part, gpus // int(plant.gpus_per_unit.max()))
    while leafs <= min(_leafs_of_a_pod(plant), gpus):
        if gpus % leafs == 0 and leafs > 1 and _is_possible(plant, gpus // leafs):
            yield leafs, gpus // leafs // plant.rails
        leafs *= 2


def all_divisors(plant: Plant, gpus: int) -> Iterator[Shape]:
    """Every divisor of N that whole servers allow, fewest leafs first: places jobs that the published order cannot.

    >>> from ropewalk.tenancy.plant import plant
    >>> list(all_divisors(plant("leaf-spine:64x32x32", gpus_per_server=4), 48))
    [(2, 24), (3, 16), (4, 12), (6, 8), (12, 4)]
    """
    for leafs in range(2, min(_leafs_of_a_pod(plant), gpus) + 1):
        if gpus % leafs == 0 and _is_possible(plant, gpus // leafs):
            yield leafs, gpus // leafs // plant.rails


def over_pods(plant: Plant, gpus: int, shapes: Shapes) -> Iterator[tuple[int, int, int]]:
    """(pods, leafs of each, spines): fewest pods first, in each the same order of shapes, one leaf first.

    >>> from ropewalk.tenancy.plant import plant
    >>> list(over_pods(plant("fat-tree:8", gpus_per_server=2), 24, doubling))
    [(2, 3, 4), (3, 2, 4), (3, 4, 2), (4, 3, 2), (6, 1, 4), (6, 2, 2)]
    """
    cores = plant.tiers.cores_per_lane
    if not cores:
        return
    for pods in range(2, min(plant.tiers.pods, gpus) + 1):
        each = gpus // pods
        if gpus % pods:
            continue
        if each <= plant.gpus_per_unit.max() and _is_possible(plant, each):
            yield pods, 1, each // plant.rails
        for leafs, spines in shapes(plant, each):
            if leafs <= cores:
                yield pods, leafs, spines


def _leafs_of_a_pod(plant: Plant) -> int:
    """Leafs, or on rails units, of the largest pod."""
    first = plant.tiers.first_leaf
    return int((first[1:] - first[:-1]).max()) // plant.rails


def _is_possible(plant: Plant, share: int) -> bool:
    """Whole servers of a leaf, or unit, and no more spines than there are."""
    most = int(plant.gpus_per_leaf.max())
    return share % plant.gpus_per_server == 0 and share // plant.rails <= min(plant.tiers.lanes, most)
