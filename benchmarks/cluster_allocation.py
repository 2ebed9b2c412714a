"""How long one vClos allocation takes near saturation, beside the integer program of the same request.

    python benchmarks/cluster_allocation.py [--quick] [--events 2000] [--programs 20]

A cluster is filled with jobs of random sizes; every event releases a random job or asks for a new one, and requests
that go beyond a single leaf are timed: the whole answer (search, spines, GPUs, or the reason to wait). A sample of
them is also put to HiGHS, which must give the same answer.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from measure import machine, options, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from leaf_spine_program import solve_leafs

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.search import Found, Undecided, search_leafs
from ropewalk.tenancy.vclos.shapes import doubling

PLANTS = {2048: "leaf-spine:64x32x32", 8192: "leaf-spine:128x64x64", 32768: "leaf-spine:256x128x128"}
"""GPUs of a plant of switches with 64, 128 and 256 ports, all ports used."""
SIZES = np.array([8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024])
CHANCES = np.array([10, 10, 15, 20, 4, 15, 4, 12, 6, 2, 2]) / 100


@dataclass
class Times:
    """Seconds of every answer, in three kinds."""

    placed: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    program: list[float] = field(default_factory=list)
    unproved: int = 0
    undecided: int = 0
    differing: int = 0


def measure(gpus: int, events: int, programs: int, seed: int) -> tuple[Times, float]:
    """Times of requests for several leafs, and the mean share of GPUs in use meanwhile."""
    rng = np.random.default_rng(seed)
    state = Occupancy(plant(PLANTS[gpus], gpus_per_server=8))
    allocate = vclos()
    times = Times()
    fill = []
    # The time of a program grows fast with the plant; a few of them, evenly spread, tell enough.
    asked = np.linspace(events // 4, events - 1, programs).astype(int)
    pending = 0
    for event in range(events):
        pending += int((asked == event).sum())
        if state.jobs and state.used > 0.9 * gpus:
            state.release(list(state.jobs)[int(rng.integers(len(state.jobs)))])
        size = int(rng.choice(SIZES, p=CHANCES))
        began = time.perf_counter()
        answer = allocate(state, f"job{event}", size)
        took = time.perf_counter() - began
        crosses = isinstance(answer, Allocation) and answer.stage == "clos"
        if event >= events // 4:
            fill.append(state.used / gpus)
            if crosses:
                times.placed.append(took)
            elif isinstance(answer, Waiting) and answer.reason.value == "network-fragmentation":
                times.waiting.append(took)
                crosses = True
            if crosses:
                pending -= _compare(state, size, times) if pending > 0 else 0
        if isinstance(answer, Allocation):
            state.place(answer)
        elif state.jobs:
            state.release(list(state.jobs)[int(rng.integers(len(state.jobs)))])
    return times, float(np.mean(fill))


def _compare(state: Occupancy, size: int, times: Times) -> int:
    """Put the first shape of a request to both the search and HiGHS."""
    shape = next(iter(doubling(state.plant, size)), None)
    if shape is None:
        return 0
    quick = search_leafs(state, *shape)
    times.undecided += isinstance(quick, Undecided)
    times.unproved += isinstance(quick, Found) and not quick.cheapest
    began = time.perf_counter()
    slow = solve_leafs(state, *shape)
    times.program.append(time.perf_counter() - began)
    if isinstance(quick, Found) != isinstance(slow, Found) and not isinstance(quick, Undecided):
        times.differing += 1
    elif isinstance(quick, Found) and isinstance(slow, Found) and quick.cheapest and slow.cheapest:
        ports = state.ports_of_leaf
        times.differing += int(ports[list(quick.leafs)].sum() != ports[list(slow.leafs)].sum())
    return 1


def _cells(seconds: list[float]) -> list[str]:
    """How many, and their median, 99th of 100 and longest in milliseconds."""
    if not seconds:
        return ["0", "", "", ""]
    return [str(len(seconds)), *(f"{1e3 * value:.2f}" for value in np.percentile(seconds, [50, 99, 100]))]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--gpus", type=int, nargs="*", default=list(PLANTS), choices=list(PLANTS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    events, programs = (200, 2) if given.quick else (given.events, given.programs)
    measure(2048, 50, 0, 1)  # compile
    rows, slowest, differing = [], 0.0, 0
    for gpus in given.gpus[:1] if given.quick else given.gpus:
        times, fill = measure(gpus, events, programs, given.seed)
        where = [f"{gpus:,}", f"{fill:.1%}"]
        rows.append([*where, "placed over several leafs", *_cells(times.placed)])
        rows.append([*where, "no spines in common", *_cells(times.waiting)])
        rows.append([*where, "integer program, first shape", *_cells(times.program)])
        slowest = max([slowest, *times.placed, *times.waiting])
        differing += times.differing
        print(
            f"{gpus} GPUs: {times.undecided} searches undecided, {times.unproved} not proved cheapest; "
            f"{times.differing} of {len(times.program)} answers differ from the program's"
        )
    heads = ("GPUs", "in use", "answer", "number", "p50 ms", "p99 ms", "most ms")
    table(f"vClos allocations near saturation, wall time ({machine()})", heads, rows)
    summary(
        f"an allocation takes at most {1e3 * slowest:.0f} ms; {differing} answers differ from the integer program's"
    )


if __name__ == "__main__":
    main()
