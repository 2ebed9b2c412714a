"""PipeDream's planner (Narayanan et al., SOSP 2019), as a baseline.

It makes the slowest stage as fast as can be, level by level: first GPUs inside a machine, then machines. It was made
for pipelines that never flush, so neither filling nor memory of the timetable enters; gradients are summed for every
micro-batch, which is why replicas look dear to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import StrategyError
from ropewalk.pipeline._pipedream_kernel import divide
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import Profile
from ropewalk.pipeline.state_groups import StateGroups, every_state
from ropewalk.strategy.part import Part


@dataclass(frozen=True)
class Level:
    """So many GPUs in a machine, or machines in a rack, and the bytes/s between any two."""

    count: int
    bandwidth: float


@dataclass(frozen=True)
class Division:
    """States first..end-1 and how many members of each level share them, innermost level first."""

    first: int
    end: int
    replicas: tuple[int, ...]


def pipedream(
    profile: Profile,
    levels: Sequence[Level],
    *,
    contains: NDArray[np.bool_] | None = None,
    sends: bool = True,
    groups: StateGroups | None = None,
) -> tuple[Division, ...]:
    """The stages that PipeDream's planner chooses.

    States of a branching model need not contain each other: `contains[i, j]` says whether state j has all layers of
    state i and more (`released.States`); unless given, every state contains those before it. Without `sends`
    activations cross cuts at no cost, which is how its program runs unless told otherwise.
    """
    if not levels or any(level.count < 1 or not level.bandwidth > 0 for level in levels):
        raise StrategyError(f"levels {tuple(levels)}: give at least one, with a count and a bandwidth of 1 or more")
    chosen = groups or every_state(profile)
    elapsed = chosen.at_bounds(profile.forward_s + profile.backward_s)
    weights = chosen.at_bounds(profile.parameter_bytes)
    crossing = chosen.at_ends(profile.crossing_bytes)
    ends = np.array(chosen.bounds[1:]) - 1
    above = np.triu(np.ones((chosen.count, chosen.count), bool), 1)
    nested = above if contains is None else contains[np.ix_(ends, ends)]
    seconds = np.ascontiguousarray(np.triu(elapsed[None, 1:] - elapsed[:-1, None]))
    tables = []
    inner = 1
    for number, level in enumerate(levels):
        last = number == len(levels) - 1
        tables.append(divide(seconds, weights, crossing, nested, level.count, inner, level.bandwidth, sends, last))
        seconds = np.ascontiguousarray(tables[-1][0][:, :, -1])
        inner = level.count
    found = [Division(0, chosen.count, ())]
    for level, table in zip(reversed(levels), reversed(tables), strict=True):
        found = [part for whole in found for part in _parts(whole, level.count, table[1:])]
    return tuple(Division(chosen.bounds[part.first], chosen.bounds[part.end], part.replicas) for part in found)


def pipedream_stages(profile: Profile, machines: Machines, groups: StateGroups | None = None) -> tuple[Part, ...]:
    """Its stages on machines of equal size, consecutive GPUs of consecutive machines for consecutive stages."""
    sizes = set(np.diff([0, *machines.separators]).tolist())
    if len(sizes) > 1:
        raise StrategyError(
            f"PipeDream's planner needs machines of one size, not {sorted(sizes)}: leave out the others"
        )
    each = sizes.pop()
    inside = [Level(each, machines.inside)] if each > 1 else []
    outside = [Level(machines.count, machines.collective_between)] if machines.count > 1 or not inside else []
    stages = []
    machine, taken, outer = 0, 0, 1
    for part in pipedream(profile, [*inside, *outside], groups=groups):
        own = part.replicas[0] if inside else 1
        across = part.replicas[-1] if outside else 1
        if taken + own > each or across != outer:
            machine, taken, outer = machine + (outer if taken else 0), 0, across
        gpus = tuple((machine + other) * each + taken + gpu for other in range(across) for gpu in range(own))
        stages.append(Part(part.first, part.end - 1, gpus))
        taken += own
        if taken == each:
            machine, taken = machine + across, 0
    return tuple(stages)


def _parts(whole: Division, count: int, table: tuple[NDArray[np.int32], ...]) -> list[Division]:
    """How one level divides what the level above gave it."""
    before, others, used = table
    end, machines = whole.end, count - 1
    found = []
    while True:
        split = int(before[whole.first, end - 1, machines])
        own = int(used[whole.first, end - 1, machines])
        found.append(Division(split + 1 if split >= 0 else whole.first, end, (own, *whole.replicas)))
        if split < 0:
            return found[::-1]
        machines = int(others[whole.first, end - 1, machines])
        end = split + 1
