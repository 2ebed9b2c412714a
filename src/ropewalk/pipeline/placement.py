"""Which GPUs a stage gets next: the three placement policies of DAPPLE.

Fresh First takes machines that nobody uses yet, so that the replicas of a stage stay together and add up gradients over
NVLink. Append First takes machines that are in use already, so that no holes are left. Scatter First takes one GPU of
each machine in turn, which suits stages with few weights. Between them they keep the number of GPU sets that a search
meets small.

Sets of GPUs are bit masks (`masks.py`): GPU g is bit g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from ropewalk.errors import StrategyError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.masks import members

Policy = Callable[[Machines, int, int], int | None]
"""(machines, occupied, need) to a mask of `need` free GPUs, or None where the policy finds no such set."""


def fresh_first(machines: Machines, occupied: int, need: int) -> int | None:
    """GPUs of machines that nobody uses, filled one machine after the other."""
    fresh = (machine for machine in machine_masks(machines.separators) if not machine & occupied)
    return _filled(fresh, occupied, need)


def append_first(machines: Machines, occupied: int, need: int) -> int | None:
    """GPUs of machines that somebody uses already, filled one machine after the other."""
    used = (machine for machine in machine_masks(machines.separators) if machine & occupied)
    return _filled(used, occupied, need)


def scatter_first(machines: Machines, occupied: int, need: int) -> int | None:
    """One GPU of every machine that has some left, again and again."""
    free = [machine & ~occupied for machine in machine_masks(machines.separators)]
    left = [mask.bit_count() for mask in free]
    if sum(left) < need:
        return None
    taken = [0] * len(left)
    while need:
        open_machines = [number for number, room in enumerate(left) if room > taken[number]]
        # Whole rounds at once: until the need or the smallest room left ends them, then one last partial round.
        rounds = min(need // len(open_machines), min(left[number] - taken[number] for number in open_machines))
        for number in open_machines if rounds else open_machines[:need]:
            taken[number] += max(rounds, 1)
            need -= max(rounds, 1)
    return sum(_lowest(mask, count) for mask, count in zip(free, taken, strict=True))


POLICIES: tuple[Policy, ...] = (fresh_first, append_first, scatter_first)


def candidates(
    machines: Machines, occupied: int, need: int, policies: tuple[Policy, ...] = POLICIES
) -> tuple[int, ...]:
    """The sets of `need` free GPUs that the policies propose, each once, in the order of their GPUs.

    >>> [members(mask) for mask in candidates(Machines(8, (4, 8)), occupied=0b1, need=4)]
    [(1, 2, 4, 5), (4, 5, 6, 7)]
    """
    if need < 1 or need > machines.gpus - occupied.bit_count():
        raise StrategyError(
            f"{need} GPUs are requested where {machines.gpus - occupied.bit_count()} of {machines.gpus} are free: "
            "give a stage at least one GPU and no more than there are"
        )
    found = {mask for policy in policies if (mask := policy(machines, occupied, need)) is not None}
    return tuple(sorted(found, key=members))


def replicated(machines: Machines, occupied: int, need: int, replicas: int) -> tuple[int, ...]:
    """The sets that follow from placing `need` GPUs `replicas` times, one replica after the other, by any policies."""
    found = {0}
    for _ in range(replicas):
        found = {taken | more for taken in found for more in candidates(machines, occupied | taken, need)}
    return tuple(sorted(found, key=members))


@lru_cache(maxsize=64)
def machine_masks(separators: tuple[int, ...]) -> tuple[int, ...]:
    """The GPUs of each machine."""
    starts = (0, *separators[:-1])
    return tuple((1 << end) - (1 << start) for start, end in zip(starts, separators, strict=True))


def _filled(machines: Iterable[int], occupied: int, need: int) -> int | None:
    taken = 0
    for machine in machines:
        free = machine & ~occupied
        room = free.bit_count()
        taken |= free if room <= need else _lowest(free, need)
        need -= min(room, need)
        if not need:
            return taken
    return None


def _lowest(mask: int, count: int) -> int:
    """The lowest `count` GPUs of a mask."""
    taken = 0
    for _ in range(count):
        lowest = mask & -mask
        taken |= lowest
        mask ^= lowest
    return taken
