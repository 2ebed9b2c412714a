"""Which leafs × spines a job of N GPUs may take: l leafs with s = N / l GPUs each, and s spines.

Equal numbers on all leafs are what keeps every collective apart; N with a large odd part has few such shapes, and a
prime has none beyond a single leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ropewalk.tenancy.plant import Plant

Shape = tuple[int, int]
"""(leafs, spines)."""
Shapes = Callable[[Plant, int], Iterator[Shape]]
"""In which order shapes are tried for a number of GPUs; the first that fits is taken."""


def doubling(plant: Plant, gpus: int) -> Iterator[Shape]:
    """The published order: l doubles from max(odd part of N, N // GPUs per leaf). Not every divisor is tried.

    >>> from ropewalk.tenancy.plant import plant
    >>> list(doubling(plant("leaf-spine:64x32x32", gpus_per_server=4), 48))
    [(3, 16), (6, 8), (12, 4)]
    """
    odd_part = gpus // (gpus & -gpus)
    leafs = max(odd_part, gpus // int(plant.gpus_per_leaf.max()))
    while leafs <= min(plant.leafs, gpus):
        if gpus % leafs == 0 and _is_possible(plant, leafs, gpus // leafs):
            yield leafs, gpus // leafs
        leafs *= 2


def all_divisors(plant: Plant, gpus: int) -> Iterator[Shape]:
    """Every divisor of N that whole servers allow, fewest leafs first: places jobs that the published order cannot.

    >>> from ropewalk.tenancy.plant import plant
    >>> list(all_divisors(plant("leaf-spine:64x32x32", gpus_per_server=4), 48))
    [(2, 24), (3, 16), (4, 12), (6, 8), (12, 4)]
    """
    for leafs in range(2, min(plant.leafs, gpus) + 1):
        if gpus % leafs == 0 and _is_possible(plant, leafs, gpus // leafs):
            yield leafs, gpus // leafs


def _is_possible(plant: Plant, leafs: int, spines: int) -> bool:
    """Several leafs with whole servers, and no more spines than there are."""
    most = int(plant.gpus_per_leaf.max())
    return leafs > 1 and spines % plant.gpus_per_server == 0 and spines <= min(plant.spines, most)
