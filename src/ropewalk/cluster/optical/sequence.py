"""An optical fabric over time: a sequence of fabrics, with what changed between them and for which job.

Circuits are set up when a job starts. When it ends its circuits stay as they are until another job needs a fibre of
theirs: mirrors turn only where they must.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ropewalk.cluster.allocation import Allocation
from ropewalk.cluster.optical.circuits import Circuit, circuits_of
from ropewalk.cluster.optical.plant import OpticalPlant
from ropewalk.cluster.optical.wired import wired_fabric
from ropewalk.cluster.record import JobRecord
from ropewalk.errors import ClusterError
from ropewalk.fabric import Fabric


@dataclass(frozen=True)
class Change:
    """The fibres of one job being joined; the circuits of all others carry on meanwhile."""

    job: str
    start_s: float
    ready_s: float
    """When its circuits carry bytes; equal to the start where all of them were there."""
    set_up: tuple[Circuit, ...]
    torn_down: tuple[Circuit, ...]
    """Circuits that ended jobs had left, and that stood in the way."""
    circuits: tuple[Circuit, ...]
    """All circuits from then on, sorted."""

    def fabric(self, plant: OpticalPlant) -> Fabric:
        return wired_fabric(plant, self.circuits, f"{plant.name} from {self.ready_s:g} s")


def circuits_over_time(plant: OpticalPlant, jobs: Iterable[JobRecord]) -> CircuitLog:
    """The sequence of fabrics that a replay went through: one change for every start of a job with circuits.

    Every change keeps all circuits of its moment, so this is for traces of hundreds of jobs rather than thousands.
    """
    moves = []
    for job in jobs:
        for stretch in job.stretches:
            if stretch.allocation.stage == "ocs":
                moves.append((stretch.start_s, True, stretch.allocation))
                moves.append((stretch.end_s, False, stretch.allocation))
    log = CircuitLog(plant)
    for time_s, starts, held in sorted(moves, key=lambda move: move[:2]):  # who ends makes room first
        if starts:
            log.start(time_s, held)
        else:
            log.end(time_s, held.job)
    return log


class CircuitLog:
    """Writes down the circuits of a plant as jobs start and end."""

    def __init__(self, plant: OpticalPlant) -> None:
        self.plant = plant
        self.changes: list[Change] = []
        self._running: dict[str, tuple[Circuit, ...]] = {}
        self._at: dict[tuple[int, int], Circuit] = {}
        """(leaf, switch): the circuit there."""
        self._now_s = 0.0

    def start(self, time_s: float, job: Allocation) -> Change:
        """Join the fibres of a job; what it needs and finds in place is kept."""
        self._advance(time_s)
        wanted = circuits_of(self.plant, job)
        if job.job in self._running:
            raise ClusterError(f"job {job.job} is running already: end it first")
        before = self.circuits()
        present = set(before)
        torn_down = self._in_the_way(job.job, wanted, present)
        for circuit in torn_down:
            for port in circuit.leaf_ports():
                del self._at[port]
        for circuit in wanted:
            for port in circuit.leaf_ports():
                self._at[port] = circuit
        set_up = tuple(circuit for circuit in wanted if circuit not in present)
        ready_s = time_s + (self.plant.reconfiguration_s if set_up else 0.0)
        self._running[job.job] = wanted
        change = Change(job.job, time_s, ready_s, set_up, torn_down, self.circuits())
        self.changes.append(change)
        return change

    def end(self, time_s: float, job: str) -> None:
        """The job is gone; its circuits stay, for anyone."""
        self._advance(time_s)
        if job not in self._running:
            raise ClusterError(f"job {job} has no circuits here: end a job that was started")
        del self._running[job]

    def circuits(self) -> tuple[Circuit, ...]:
        """All circuits now, sorted."""
        return tuple(sorted(set(self._at.values())))

    def idle(self) -> tuple[Circuit, ...]:
        """Circuits of no running job."""
        busy = {circuit for circuits in self._running.values() for circuit in circuits}
        return tuple(circuit for circuit in self.circuits() if circuit not in busy)

    def _advance(self, time_s: float) -> None:
        if time_s < self._now_s:
            raise ClusterError(f"{time_s} s is before {self._now_s} s: write events down in the order of time")
        self._now_s = time_s

    def _in_the_way(self, job: str, wanted: tuple[Circuit, ...], present: set[Circuit]) -> tuple[Circuit, ...]:
        """Idle circuits on fibres that the job needs for something else; a running one there is a mistake."""
        new = [circuit for circuit in wanted if circuit not in present]
        stay = {circuit for circuits in self._running.values() for circuit in circuits}
        for circuit in wanted:
            if circuit in stay:
                raise ClusterError(f"job {job} asks for circuit {circuit}, which runs: allocate from free fibres")
        gone = {self._at[port] for circuit in new for port in circuit.leaf_ports() if port in self._at}
        kept = [circuit for circuit in present if circuit not in gone]
        kept_for_job = set(wanted) & present
        for spine, switch in sorted({(circuit.spine, circuit.switch) for circuit in new if circuit.spine >= 0}):
            at_port = sorted(c for c in kept if (c.spine, c.switch) == (spine, switch))
            needed = sum((circuit.spine, circuit.switch) == (spine, switch) for circuit in new)
            over = len(at_port) + needed - int(self.plant.spine_fibres[spine, switch])
            spare = [c for c in at_port if c not in stay and c not in kept_for_job]
            if over > len(spare):
                raise ClusterError(
                    f"job {job} asks for more circuits at {self.plant.spine_names[spine]} and switch {switch} than "
                    "there are fibres: allocate from free fibres"
                )
            gone.update(spare[: max(over, 0)])
        for circuit in sorted(gone & stay):
            raise ClusterError(f"job {job} would break circuit {circuit} of a running job: allocate from free fibres")
        return tuple(sorted(gone))
