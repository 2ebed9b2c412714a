"""How much reducing and spreading can share the links: a linear program over capacities, with cuts added as needed.

Every byte has a root: it is reduced to there along a tree (or starts there), then spread from there along a tree. Let
x(v) bytes/s have root v, and let the trees that spread them use g(e) of arc e and those that reduce them h(e). Such
trees exist when x(S) <= g(arcs out of S) and x(S) <= h(arcs into S) for every set S of nodes that leaves out a member
(Edmonds' branchings), and when a switch sends what it receives of each (otherwise it would have to copy). So the
optimum is the largest X = sum of x with g + h <= c. The sets S are too many to write down; those that a solution
violates are found by maximum flows and added until none is left.

- Spreading alone with x in the proportion of shards is an all-gather, or with one root a broadcast.
- With both, x free, it is an all-reduce. Where links are alike both ways, h is g backwards without loss (the mean of
  a solution and its mirror image is one as well), and any tree of a pair can be moved to another root, so that one
  root is enough unless switches copy.
- Where shifts of the fabric make all members alike, arcs of a kind share one variable and one sink is looked at: the
  mean over all shifts of a solution is a solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.collectives.optimum.linear_program import LinearSolution, largest_first_variable
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import common_unit
from ropewalk.collectives.optimum.rooted import narrowest_between_members

_GRID = 1 << 40
"""Steps that the largest rate is divided into when cuts are searched with whole numbers."""
_TOLERANCE = 1e-9
"""A cut that is exceeded by less than this share of the optimum counts as kept."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """Which part of every arc carries what, at the optimum of a linear program over capacities."""

    network: Network
    share: tuple[Fraction, ...] | None
    """The part of all bytes that has each member as its root; None where that was free to choose."""
    spreads: bool
    reduces: bool
    mirrored: bool
    """Whether the reducing part is the spreading part backwards."""
    rate: float
    """X, in units of capacity."""
    root: Floats
    """Bytes/s with each member as root."""
    spreading: Floats
    """g of every arc (zeros where nothing is spread)."""
    reducing: Floats
    """h of every arc."""
    cuts: tuple[tuple[bool, NDArray[np.bool_]], ...]
    """Sets of vertices that were needed; True for those that spreading has to leave, False for reducing to enter."""
    cut_price: Floats
    """What a unit more across each cut would gain."""
    spreading_price: Floats
    """What it would gain if a vertex could send a unit more of what is spread than it receives."""
    reducing_price: Floats


def best_sharing(
    network: Network,
    *,
    share: tuple[Fraction, ...] | None,
    spreads: bool = True,
    reduces: bool = True,
    enough: float = 0.0,
) -> Sharing:
    """Solve the linear program, cut by cut; a rate that is `enough` ends the search, feasible or not."""
    program = _Program(network, share, spreads, reduces)
    for member in network.sinks:
        everyone_else = np.ones(network.vertices, np.bool_)
        everyone_else[member] = False
        alone = ~everyone_else
        for inside in (everyone_else, alone):
            program.add_cut(True, inside)
            program.add_cut(False, inside)
    while True:
        solution = program.solved()
        satisfied = solution.values[0] * program.scale <= enough * (1 + _TOLERANCE)
        if satisfied or not program.add_violated(solution):
            return program.sharing(solution)


@dataclass(eq=False)
class _Program:
    """Variables: X, then x of each member where free, then g of each class of arcs, then h where not g mirrored."""

    network: Network
    share: tuple[Fraction, ...] | None
    spreads: bool
    reduces: bool
    mirrored: bool = field(init=False)
    cuts: list[tuple[bool, NDArray[np.bool_]]] = field(default_factory=list)
    _seen: set[tuple[bool, bytes]] = field(default_factory=set)
    _rows: list[csr_array[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mirrored = self.spreads and self.reduces and self.network.mirror is not None
        self.classes = int(self.network.arc_class.max()) + 1
        self.first_arc = 1 + (len(self.network.members) if self.share is None else 0)
        self.parts = 1 + (self.spreads and self.reduces and not self.mirrored)
        self.width = self.first_arc + self.parts * self.classes
        self.scale = float(self._largest_use())
        self._share = np.array([float(part) for part in self.share or ()])
        self._capacity_rows, self._capacity = self._capacities()
        self._balance = self._balances()

    def _columns(self, spreading: bool) -> Ints:
        """The variable of every arc in the spreading or the reducing part."""
        classes = self.network.arc_class
        if spreading or self.parts == 1:
            if not spreading and self.mirrored:
                assert self.network.mirror is not None
                return self.first_arc + classes[self.network.mirror]
            return self.first_arc + classes
        return self.first_arc + self.classes + classes

    def _capacities(self) -> tuple[csr_array[Any], Floats]:
        """g + h <= c for every class of arcs."""
        _, arc = np.unique(self.network.arc_class, return_index=True)
        rows, columns = [], []
        for spreading, wanted in ((True, self.spreads), (False, self.reduces)):
            if wanted:
                rows.append(np.arange(self.classes))
                columns.append(self._columns(spreading)[arc])
        row, column = np.concatenate(rows), np.concatenate(columns)
        table = coo_array((np.ones(len(row)), (row, column)), shape=(self.classes, self.width)).tocsr()
        return table, np.array([min(self.network.capacity[a] / self.scale, 1.0) for a in arc])

    def _largest_use(self) -> Fraction:
        """What an arc can be used for at most, by trees of N - 1 branches that carry no more than the narrowest cut."""
        network, largest = self.network, Fraction(max(self.network.capacity))
        if not network.uneven:
            return largest
        if self.reduces or self.share is None:
            bound = narrowest_between_members(network)
        else:
            unit = common_unit(self.share)
            weight = tuple(int(part / unit) for part in self.share)
            bound = sum(weight) / largest_ratio(replace(network, weight=weight)).value
        uses = (len(network.members) - 1) * (1 + (self.spreads and self.reduces))
        return min(largest, uses * bound)

    def _balances(self) -> csr_array[Any]:
        """Forwarders send what they receive, in every part; then the roots' bytes/s add up to X."""
        network = self.network
        place = np.full(network.vertices, -1)
        place[network.forwarders] = np.arange(len(network.forwarders))
        blocks = []
        for spreading, wanted in ((True, self.spreads), (False, self.reduces)):
            if not wanted or (not spreading and self.mirrored):
                continue
            column = self._columns(spreading)
            row = np.concatenate([place[network.tail], place[network.head]])
            sign = np.repeat([1.0, -1.0], network.arcs)
            kept = row >= 0
            both = np.concatenate([column, column])
            shape = (len(network.forwarders), self.width)
            blocks.append(coo_array((sign[kept], (row[kept], both[kept])), shape=shape).tocsr())
        if self.share is None:
            members = len(network.members)
            row = np.zeros(members + 1, np.int64)
            terms = np.concatenate([[1.0], np.full(members, -1.0)])
            blocks.append(coo_array((terms, (row, np.arange(members + 1))), shape=(1, self.width)).tocsr())
        return vstack(blocks).tocsr() if blocks else csr_array((0, self.width))

    def add_cut(self, spreading: bool, inside: NDArray[np.bool_]) -> bool:
        """x(S) <= g(out of S), or x(S) <= h(into S); False where that is known already or says nothing."""
        network = self.network
        if not (self.spreads if spreading else self.reduces and not self.mirrored):
            return False
        key = (spreading, inside.tobytes())
        if key in self._seen or inside[network.members].all() or not inside[network.members].any():
            return False
        self._seen.add(key)
        ins, outs = inside[network.tail], inside[network.head]
        arcs = np.flatnonzero(ins & ~outs) if spreading else np.flatnonzero(~ins & outs)
        column = [self._columns(spreading)[arcs]]
        value = [np.full(len(arcs), -1.0)]
        roots = np.flatnonzero(inside[network.members])
        if self.share is None:
            column.append(1 + roots)
            value.append(np.ones(len(roots)))
        else:
            column.append(np.zeros(1, np.int64))
            value.append(self._share[roots].sum(keepdims=True))
        columns, values = np.concatenate(column), np.concatenate(value)
        row = coo_array((values, (np.zeros(len(columns), np.int64), columns)), shape=(1, self.width)).tocsr()
        self._rows.append(row)
        self.cuts.append((spreading, inside))
        return True

    def solved(self) -> LinearSolution:
        upper = vstack([self._capacity_rows, *self._rows]).tocsr()
        limit = np.concatenate([self._capacity, np.zeros(len(self._rows))])
        subject = f"sharing of {self.network.fabric.name}"
        return largest_first_variable(subject, upper, limit, self._balance, np.zeros(self._balance.shape[0]))

    def add_violated(self, solution: LinearSolution) -> bool:
        """Add the cuts that stop a flow to a member; False where every member gets everything."""
        network = self.network
        roots, spreading, reducing = self._unpacked(solution.values)
        added = False
        for spread, wanted, rate in ((True, self.spreads, spreading), (False, self.reduces, reducing)):
            if not wanted or (not spread and self.mirrored):
                continue
            one_way = network if spread else network.reversed()
            grid = _GRID / max(1.0, float(roots.sum()))
            fed = np.rint(roots * grid).astype(np.int64)
            capacity = np.concatenate([np.rint(rate * grid).astype(np.int64), fed])
            need = int(fed.sum())
            slack = int(_TOLERANCE * need) + network.arcs
            sinks = network.sinks
            while len(sinks):
                short = one_way.flow_network.first_shortfall(capacity, network.vertices, sinks, need - slack)
                if short is None:
                    break
                added |= self.add_cut(spread, short.source_side[: network.vertices])
                sinks = sinks[short.position + 1 :]
        return added

    def _unpacked(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """x of every member, g and h of every arc."""
        roots = values[1 : 1 + len(self.network.members)] if self.share is None else values[0] * self._share
        nothing = np.zeros(self.network.arcs)
        spreading = values[self._columns(True)] if self.spreads else nothing
        reducing = values[self._columns(False)] if self.reduces else nothing
        return np.maximum(roots, 0), np.maximum(spreading, 0), np.maximum(reducing, 0)

    def sharing(self, solution: LinearSolution) -> Sharing:
        network = self.network
        roots, spreading, reducing = self._unpacked(solution.values)
        prices = []
        at = 0
        for spread, wanted in ((True, self.spreads), (False, self.reduces)):
            price = np.zeros(network.vertices)
            if wanted and not (not spread and self.mirrored):
                price[network.forwarders] = solution.equal_price[at : at + len(network.forwarders)]
                at += len(network.forwarders)
            prices.append(price)
        return Sharing(
            network=network,
            share=self.share,
            spreads=self.spreads,
            reduces=self.reduces,
            mirrored=self.mirrored,
            rate=float(solution.values[0]) * self.scale,
            root=roots * self.scale,
            spreading=spreading * self.scale,
            reducing=reducing * self.scale,
            cuts=tuple(self.cuts),
            cut_price=solution.upper_price[self.classes :],
            spreading_price=prices[0],
            reducing_price=prices[1],
        )
