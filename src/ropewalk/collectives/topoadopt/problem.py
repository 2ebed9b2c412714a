"""What the three kinds of columns have in common for those who pack, prune and prove them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, TypeVar

from scipy.sparse import csr_array

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._weights import Graph
from ropewalk.collectives.topoadopt.graph import SearchEnd

F_co = TypeVar("F_co", covariant=True)


class PackingProblem(Protocol[F_co]):
    """A collective as trees to pack; the trees found so far are its columns."""

    @property
    def network(self) -> Network: ...

    @property
    def graph(self) -> Graph: ...

    def search(self, step: float, wanted: float, growth: float) -> SearchEnd:
        """Find trees with multiplicative weights and keep them."""
        ...

    def use(self) -> csr_array[Any]:
        """How often each tree (a column) takes each arc (a row)."""
        ...

    def equations(self) -> csr_array[Any]:
        """Rows that are zero for (rate of all, rate of each tree) where trees make whole collectives."""
        ...

    def groups(self) -> Ints:
        """A number for each tree; those with the same one can stand in for each other."""
        ...

    def depths(self) -> Ints:
        """Branches on the longest way from the root of each tree."""
        ...

    def least_cost(self, price: Floats) -> Fraction:
        """What a collective of one byte costs at least, exactly, where arcs have whole prices."""
        ...

    def symmetric(self, price: Floats) -> Floats:
        """Prices that bound as well, and under which `least_cost` knows the cheapest column."""
        ...

    def counts(self, rate: Floats, units: int) -> Ints:
        """Whole numbers in the proportion of rates that make so many times the smallest whole collective."""
        ...

    def total(self, counts: Ints) -> int:
        """How many times a byte is carried by so many bytes on each tree."""
        ...

    def forest(self, counts: Ints, unit: Fraction) -> F_co:
        """The forest of trees with so many units of bytes/s each."""
        ...
