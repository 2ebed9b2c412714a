"""A testbed as data: runs on labs by name, which of them are compared, and what was published about that.

A `Setup` knows how to make the lab and the work of a run with the engines of the other commands: collectives, jobs of a
cluster, steps of plans. It is asked for as much work as takes so many seconds, because times are compared per amount of
work: seconds per MB of a buffer, per iteration of jobs, per step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.forwarding import LabTables
from ropewalk.lab.job import LabWork
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.request import tables_of
from ropewalk.lab.suite.claim import Claim
from ropewalk.routing import Routes

Read = Callable[[NDArray[np.float64]], float]
"""From the ends of all tasks to the seconds that are compared."""


def last_end(end: NDArray[np.float64]) -> float:
    """The time of all of it."""
    return float(end.max())


@dataclass(frozen=True, eq=False)
class Ready:
    """A run that can be measured."""

    network: LabNetwork
    routing: str
    routes: Routes | None
    """Of the lab; None where the kernel hashes."""
    work: LabWork
    amount: float
    """How much is done: compared times are seconds for one of it."""
    read: Read = last_end

    def tables(self) -> LabTables:
        return tables_of(self.network.fabric, self.routes)


class Setup(Protocol):
    """How the lab and the work of a run are made."""

    @property
    def hashed(self) -> bool:
        """Do flows meet by chance, as a hash decides?"""

    @property
    def unit(self) -> str:
        """What one of the amount is, in words."""

    def ready(self, seconds: float, seed: int) -> Ready:
        """Make it, with as much work as takes about so many seconds."""


@dataclass(frozen=True)
class Case:
    """One run of a testbed."""

    name: str
    """What pages call it; unique in its testbed."""
    setup: Setup
    rewires: bool = False
    """On the lab of the run before it, with other circuits, as an optical switch makes them."""
    short: bool = False
    """Part of the short form of the suite."""


@dataclass(frozen=True)
class TimeRatio:
    """The time of one run over that of another."""

    slow: str
    fast: str
    claim: Claim


@dataclass(frozen=True)
class Recipe:
    """All runs of a testbed, and what is compared."""

    cases: tuple[Case, ...]
    comparisons: tuple[TimeRatio, ...]
    notes: tuple[str, ...] = field(default=())
    """What differs from the testbed of the paper."""

    def shortened(self) -> Recipe:
        """Only what the short form runs."""
        cases = tuple(case for case in self.cases if case.short)
        names = {case.name for case in cases}
        return Recipe(cases, tuple(one for one in self.comparisons if {one.slow, one.fast} <= names), self.notes)
