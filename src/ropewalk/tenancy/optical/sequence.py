"""Circuits over time: which are set up when a job starts, which of them were there already, which stand in the way.

When a job ends its circuits stay as they are until another job needs a fibre of theirs: mirrors turn only where they
must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.circuits import Circuit, circuits_of
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.record import JobRecord


@dataclass(frozen=True)
class Change:
    """The fibres of one job being joined; the circuits of all others carry on meanwhile."""

    job: str
    set_up: tuple[Circuit, ...]
    kept: tuple[Circuit, ...]
    """Circuits that ended jobs had left, and that are what this one needs."""
    torn_down: tuple[Circuit, ...]
    """Circuits that ended jobs had left, and that stood in the way."""


def changes_of(plant: OpticalPlant | CoreOpticalPlant | PodOpticalPlant, jobs: Iterable[JobRecord]) -> list[Change]:
    """What a replay did to the mirrors: one change for every start of a job with circuits."""
    moves = []
    for job in jobs:
        for stretch in job.stretches:
            if stretch.allocation.has_circuits:
                moves.append((stretch.start_s, True, stretch.allocation))
                moves.append((stretch.end_s, False, stretch.allocation))
    log = CircuitLog(plant)
    for _, starts, held in sorted(moves, key=lambda move: move[:2]):  # who ends makes room first
        if starts:
            log.start(held)
        else:
            log.end(held.job)
    return log.changes


def turned(changes: Sequence[Change]) -> dict[str, int]:
    """Changes in numbers.

    >>> turned([Change("a", (Circuit(0, 1, 2),), (), ())])
    {'jobs': 1, 'set_up': 1, 'kept': 0, 'torn_down': 0}
    """
    return {
        "jobs": len(changes),
        "set_up": sum(len(change.set_up) for change in changes),
        "kept": sum(len(change.kept) for change in changes),
        "torn_down": sum(len(change.torn_down) for change in changes),
    }


class CircuitLog:
    """Writes down the circuits of a plant as jobs start and end."""

    def __init__(self, plant: OpticalPlant | CoreOpticalPlant | PodOpticalPlant) -> None:
        self.plant = plant
        # What circuits lead up to: spines, or cores that forward packets.
        if isinstance(plant, CoreOpticalPlant):
            self._fibres, self._names = plant.core_fibres, plant.core_names[plant.switches :]
        else:
            self._fibres, self._names = plant.spine_fibres, plant.spine_names
        self.changes: list[Change] = []
        self._running: dict[str, tuple[Circuit, ...]] = {}
        self._busy: set[Circuit] = set()
        """Circuits of running jobs."""
        self._at_leaf: dict[tuple[int, int], Circuit] = {}
        """(leaf, switch): the circuit there."""
        self._at_spine: dict[tuple[int, int], set[Circuit]] = {}
        """(spine, switch): the circuits there."""

    def start(self, job: Allocation) -> Change:
        """Join the fibres of a job; what it needs and finds in place is kept."""
        if job.job in self._running:
            raise ClusterError(f"job {job.job} is running already: end it first")
        wanted = circuits_of(self.plant, job)
        kept = [circuit for circuit in wanted if self._at_leaf.get((circuit.leaf, circuit.switch)) == circuit]
        new = sorted(set(wanted) - set(kept))
        torn_down = self._in_the_way(new, kept)
        for circuit in (*kept, *torn_down):
            if circuit in self._busy:
                raise ClusterError(
                    f"job {job.job} would take circuit {circuit} of a running job: allocate from free fibres"
                )
        for circuit in torn_down:
            self._remove(circuit)
        for circuit in new:
            self._add(circuit)
        self._running[job.job] = wanted
        self._busy |= set(wanted)
        change = Change(job.job, tuple(new), tuple(kept), torn_down)
        self.changes.append(change)
        return change

    def end(self, job: str) -> None:
        """The job is gone; its circuits stay, for anyone."""
        if job not in self._running:
            raise ClusterError(f"job {job} has no circuits here: end a job that was started")
        self._busy -= set(self._running.pop(job))

    def circuits(self) -> tuple[Circuit, ...]:
        """All circuits now, sorted."""
        return tuple(sorted(set(self._at_leaf.values())))

    def idle(self) -> tuple[Circuit, ...]:
        """Circuits of no running job."""
        return tuple(circuit for circuit in self.circuits() if circuit not in self._busy)

    def _add(self, circuit: Circuit) -> None:
        for port in circuit.leaf_ports():
            self._at_leaf[port] = circuit
        if circuit.spine >= 0:
            self._at_spine.setdefault((circuit.spine, circuit.switch), set()).add(circuit)

    def _remove(self, circuit: Circuit) -> None:
        for port in circuit.leaf_ports():
            del self._at_leaf[port]
        if circuit.spine >= 0:
            self._at_spine[circuit.spine, circuit.switch].remove(circuit)

    def _in_the_way(self, new: Sequence[Circuit], kept: Sequence[Circuit]) -> tuple[Circuit, ...]:
        """Circuits on fibres that a job needs for something else: at leafs those there, at spines as many as must."""
        gone = {self._at_leaf[port] for one in new for port in one.leaf_ports() if port in self._at_leaf}
        asked = Counter((one.spine, one.switch) for one in new if one.spine >= 0)
        for (spine, switch), needed in sorted(asked.items()):
            there = self._at_spine.get((spine, switch), set()) - gone
            over = len(there) + needed - int(self._fibres[spine, switch])
            spare = sorted(there - self._busy - set(kept))
            if over > len(spare):
                raise ClusterError(
                    f"more circuits are asked for at {self._names[spine]} and switch {switch} than there "
                    "are fibres: allocate from free fibres"
                )
            gone.update(spare[: max(over, 0)])
        return tuple(sorted(gone))
