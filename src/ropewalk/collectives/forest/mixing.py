"""The best mix of trees at one root of a fabric on which all hosts are alike.

Shifted to all roots, the trees of one root load every arc of a class with the same. So it only matters how often they
use each class in the mean, and a member may be reached by any way that starts at a member nearer to the root. That
leaves a small linear program: members that have the same choice share their variables. Its corner is rounded to
fractions, which are then checked exactly, and members are divided between ways so that only few are divided themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.direct_ways import Usage, direct_ways
from ropewalk.collectives.forest.forest import Branch, Tree
from ropewalk.collectives.forest.shifts import Shifts, shifts_of
from ropewalk.collectives.forest.symmetric import SymmetricForest, symmetric_forest
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import DENOMINATORS, nearby


def mixed_forest(network: Network, rate: Fraction) -> SymmetricForest | None:
    """Trees that carry a rate, in units of the network, from every member; None where no such mix is found."""
    shifts = shifts_of(network)
    ways = direct_ways(network, 0)
    for count_levels in _LEVELS:
        level = count_levels(shifts, ways)
        choice = _choices(shifts, ways, level)
        mix = _mix(network, list(ways), choice, level, rate)
        if mix is not None:
            first = _trees(network, shifts, ways, choice, level, mix, rate)
            return symmetric_forest(network, shifts, first)
    return None


def _by_hops(shifts: Shifts, ways: dict[Usage, dict[int, tuple[int, ...]]]) -> Ints:
    """Direct ways from member 0."""
    strides = sorted({end for ends in ways.values() for end in ends})
    level = np.full(len(shifts.network.members), -1, np.int64)
    level[0] = 0
    edge = np.zeros(1, np.int64)
    while len(edge):
        ends = np.unique(np.concatenate([shifts.hosts.moved(edge, stride) for stride in strides]))
        edge, depth = ends[level[ends] < 0], int(level[edge[0]]) + 1
        level[edge] = depth
    return level


def _by_digits(shifts: Shifts, ways: dict[Usage, dict[int, tuple[int, ...]]]) -> Ints:
    """Digits in which a member differs from member 0: servers, then places in them, however fast a way around is."""
    level = np.zeros(len(shifts.network.members), np.int64)
    for weight, side in zip(shifts.hosts.generators.tolist(), [s for s in shifts.hosts.sides if s > 1], strict=True):
        level += np.arange(len(level)) // weight % side != 0
    return level


def _by_hops_and_order(shifts: Shifts, ways: dict[Usage, dict[int, tuple[int, ...]]]) -> Ints:
    """Direct ways from member 0; among equals the lower number is nearer."""
    level = np.empty(len(shifts.network.members), np.int64)
    level[np.lexsort((np.arange(len(level)), _by_hops(shifts, ways)))] = np.arange(len(level))
    return level


_LEVELS: Sequence[Callable[[Shifts, dict[Usage, dict[int, tuple[int, ...]]]], Ints]] = (
    _by_hops,
    _by_digits,
    _by_hops_and_order,
)
"""What is meant by nearer to the root: what makes trees shallow first."""


def _choices(shifts: Shifts, ways: dict[Usage, dict[int, tuple[int, ...]]], level: Ints) -> Ints:
    """For every usage and member the lowest stride by which it is reached from nearer, as near as possible; or -1."""
    members = np.arange(len(level))
    choice = np.full((len(ways), len(level)), -1, np.int64)
    for row, ends in enumerate(ways.values()):
        nearest = level.copy()
        for stride in sorted(ends):
            parent_level = level[shifts.hosts.moved_back(members, stride)]
            better = parent_level < nearest
            choice[row, better] = stride
            nearest[better] = parent_level[better]
    return choice


@dataclass(frozen=True)
class _Kind:
    """Members with the same choice of usages, and how many of them are reached by each."""

    members: list[int]
    usages: list[int]
    amounts: list[Fraction]


def _mix(network: Network, usages: list[Usage], choice: Ints, level: Ints, rate: Fraction) -> list[_Kind] | None:
    """How many members to reach by each usage so that no class of arcs carries too much; None if that is impossible."""
    kinds: dict[tuple[int, ...], list[int]] = {}
    # Members that are reached first come first, so that those which are divided between usages are few and near leaves.
    for member in np.lexsort((np.arange(len(level)), level)).tolist():
        if member != 0:
            kinds.setdefault(tuple(np.flatnonzero(choice[:, member] >= 0).tolist()), []).append(member)
    if () in kinds:
        return None
    # One unit of usage is a member reached by all trees of the root: `rate` on each arc of its way, at every root.
    size = np.bincount(network.arc_class)
    _, one = np.unique(network.arc_class, return_index=True)
    room = [
        network.capacity[arc] * int(size[kind]) / (rate * len(network.members)) for kind, arc in enumerate(one.tolist())
    ]
    variables = [(kind, usage) for kind, listed in enumerate(kinds) for usage in listed]
    values = _solved(variables, list(kinds.values()), usages, room)
    if values is None:
        return None
    for denominator in DENOMINATORS:
        amounts = nearby(values, denominator)
        if _fits(variables, list(kinds.values()), usages, room, amounts):
            parts: list[_Kind] = [_Kind(members, [], []) for members in kinds.values()]
            for (kind, usage), amount in zip(variables, amounts, strict=True):
                if amount:
                    parts[kind].usages.append(usage)
                    parts[kind].amounts.append(amount)
            return parts
    return None


def _solved(variables: list[tuple[int, int]], kinds: list[list[int]], usages: list[Usage], room: list[Fraction]) -> Any:
    """A corner of the polytope of all mixes, in floating point."""
    uses = [(kind, at) for at, (_, usage) in enumerate(variables) for kind in usages[usage]]
    row, column = zip(*uses, strict=True)
    upper = coo_array((np.ones(len(row)), (row, column)), shape=(len(room), len(variables))).tocsr()
    belongs = [kind for kind, _ in variables]
    equal = coo_array(
        (np.ones(len(variables)), (belongs, range(len(variables)))), shape=(len(kinds), len(variables))
    ).tocsr()
    length = np.array([float(len(usages[usage])) for _, usage in variables])
    limit = np.array([float(space) for space in room])
    solve: Any = linprog  # its annotations know no sparse rows
    count = np.array([float(len(members)) for members in kinds])
    result = solve(length, A_ub=upper, b_ub=limit, A_eq=equal, b_eq=count, bounds=(0, None), method="highs-ds")
    return result.x if result.status == 0 else None


def _fits(
    variables: list[tuple[int, int]],
    kinds: list[list[int]],
    usages: list[Usage],
    room: list[Fraction],
    amounts: list[Fraction],
) -> bool:
    """Whether amounts reach every member exactly once within the room of every class."""
    reached = [Fraction(0)] * len(kinds)
    used = [Fraction(0)] * len(room)
    for (kind, usage), amount in zip(variables, amounts, strict=True):
        reached[kind] += amount
        for arc_class in usages[usage]:
            used[arc_class] += amount
    return (
        min(amounts) >= 0
        and all(total == len(members) for total, members in zip(reached, kinds, strict=True))
        and all(total <= space for total, space in zip(used, room, strict=True))
    )


def _trees(
    network: Network,
    shifts: Shifts,
    ways: dict[Usage, dict[int, tuple[int, ...]]],
    choice: Ints,
    level: Ints,
    mix: list[_Kind],
    rate: Fraction,
) -> tuple[Tree, ...]:
    """The trees of member 0, laid side by side: members one after the other on a line, cut where the usage changes."""
    stops: dict[int, list[tuple[Fraction, int]]] = {}
    ends = {Fraction(0), Fraction(1)}
    for kind in mix:
        cuts: list[tuple[Fraction, int]] = []
        for usage, amount in zip(kind.usages, kind.amounts, strict=True):
            cuts.append(((cuts[-1][0] if cuts else Fraction(0)) + amount, usage))
        at = 0
        for place, member in enumerate(kind.members):
            stops[member] = []
            while cuts[at][0] < place + 1:
                stops[member].append((cuts[at][0] - place, cuts[at][1]))
                at += 1
            stops[member].append((Fraction(1), cuts[at][1]))
            stops[member] = [(stop, usage) for stop, usage in stops[member] if stop > 0]
            ends.update(stop for stop, _ in stops[member])
    ends_of = list(ways.values())
    order = [member for member in np.lexsort((np.arange(len(level)), level)).tolist() if member != 0]
    moved = {member: shifts.moved(member).tolist() for member in range(len(level))}
    trees = []
    for begin, end in pairwise(sorted(ends)):
        tree_rate = network.bandwidth(rate * (end - begin))
        depth = {0: 0}
        branches = []
        for member in order:
            usage = next(usage for stop, usage in stops[member] if begin < stop)
            stride = int(choice[usage, member])
            parent = int(shifts.hosts.moved_back(member, stride))
            path = tuple([moved[parent][vertex] for vertex in ends_of[usage][stride]])
            branches.append(Branch(parent, member, ((path, tree_rate),)))
            depth[member] = depth[parent] + 1
        trees.append(Tree(0, tree_rate, tuple(branches), max(depth.values())))
    return tuple(trees)
