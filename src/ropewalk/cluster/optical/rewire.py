"""Minimal rewiring: of all ways to give a job its circuits, one that turns the fewest mirrors.

Circuits that ended jobs have left in place cost nothing if a new job wants the same leaf and spine. Only the choice of
switches changes: which leafs and spines a job joins, and how often, was decided before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from ropewalk.cluster.allocation import Allocation
from ropewalk.cluster.occupancy import Occupancy
from ropewalk.cluster.optical.circuits import Circuit, circuits_of, is_straight
from ropewalk.cluster.optical.fibres import FreeFibres, free_fibres, optical
from ropewalk.cluster.optical.programs import Laid, rewiring_program


def reuse_circuits(state: Occupancy, wanted: Allocation, idle: Collection[Circuit]) -> Allocation:
    """The same allocation over switches that keep as many idle circuits as possible; it is not placed yet.

    Only free fibres are used. Where the integer program finds nothing better within its limit, the allocation stays.
    """
    plant = optical(state)
    if wanted.stage != "ocs" or is_straight(plant, wanted):
        return wanted
    present = [(circuit.leaf, circuit.spine, circuit.switch) for circuit in idle if circuit.spine >= 0]
    laid = rewiring_program(free_fibres(state), Counter(wanted.links), present)
    if not isinstance(laid, Laid):
        return wanted
    left = {ends: iter(switches) for ends, switches in laid.switches().items()}
    better = replace(wanted, cables=tuple(next(left[link]) for link in wanted.links))
    kept = set(idle)
    saved = len(kept.intersection(circuits_of(plant, better))) - len(kept.intersection(circuits_of(plant, wanted)))
    return better if saved > 0 else wanted


@dataclass(frozen=True)
class Migration:
    """What it would take to have all circuits at once if running ones could move: a what-if, never done."""

    moved: int
    """Circuits of running jobs that would change; their jobs would have to stop for it."""


def migration(state: Occupancy, links: Collection[tuple[int, int]]) -> Migration | None:
    """How few running circuits would have to move so that more (leaf, spine) circuits fit; None where nothing helps.

    Straight circuits stay where they are.
    """
    plant = optical(state)
    held = [circuit for job in state.jobs.values() for circuit in circuits_of(plant, job)]
    present = [(circuit.leaf, circuit.spine, circuit.switch) for circuit in held if circuit.spine >= 0]
    free = free_fibres(state)
    leaf, spine = free.leaf.copy(), free.spine.copy()
    for at, to, switch in present:
        leaf[at, switch] = True
        spine[to, switch] += 1
    wanted = Counter(links) + Counter((at, to) for at, to, _ in present)
    laid = rewiring_program(FreeFibres(leaf, spine), wanted, present)
    if not isinstance(laid, Laid):
        return None
    chosen = set(zip(laid.leaf.tolist(), laid.spine.tolist(), laid.switch.tolist(), strict=True))
    return Migration(len(set(present) - chosen))
