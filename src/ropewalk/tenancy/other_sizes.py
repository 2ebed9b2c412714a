"""Numbers of GPUs near one that can never start: what to ask for instead, tried on the empty cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate

MOST_TRIED = 16
"""Numbers on either side; some searches cost milliseconds each."""


def sizes_that_start(allocate: Allocate, plant: Plant, gpus: int) -> tuple[int, ...]:
    """The next smaller and the next larger number of GPUs that start when nobody else is there; none if not found.

    Where none of the nearest smaller ones does, powers of two are tried, then what a leaf or unit holds.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.vclos.policy import vclos
    >>> sizes_that_start(vclos(), plant("leaf-spine:8x8x8", gpus_per_server=4), 28)
    (24, 32)
    """
    empty, size, alone = Occupancy(plant), plant.gpus_per_server, int(plant.gpus_per_unit.max())
    powers = [1 << power for power in reversed(range(gpus.bit_length())) if 1 << power > alone]
    below = [*islice(range((gpus - 1) // size * size, 0, -size), MOST_TRIED), *powers, alone]
    above = islice(range((gpus // size + 1) * size, plant.gpus + 1, size), MOST_TRIED)
    found = _first(allocate, empty, (one for one in below if one < gpus)), _first(allocate, empty, above)
    return tuple(one for one in found if one is not None)


def ask_for(sizes: Sequence[int]) -> str:
    """The advice in words, or an empty text.

    >>> ask_for((24, 32))
    'ask for 24 or 32 GPUs, which start when it is empty'
    """
    if not sizes:
        return ""
    verb = "start" if len(sizes) > 1 or sizes[0] != 1 else "starts"
    return f"ask for {' or '.join(map(str, sizes))} GPUs, which {verb} when it is empty"


def _first(allocate: Allocate, empty: Occupancy, sizes: Iterable[int]) -> int | None:
    return next((size for size in sizes if size > 0 and isinstance(allocate(empty, "", size), Allocation)), None)
