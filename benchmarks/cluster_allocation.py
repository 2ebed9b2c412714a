"""How long one allocation takes near saturation, with placing and releasing, beside the integer program of the request.

    python benchmarks/cluster_allocation.py [--quick] [--three-tiers] [--events 2000] [--programs 20]

A cluster is filled with jobs of random sizes; every event releases a random job or asks for a new one. Timed are the
whole answer (search, spines, GPUs, or the reason to wait), `place`, `release`, and draining and restoring a random
server, spine or link. A sample of the requests that go beyond a single leaf is also put to HiGHS, which must give the
same answer. The wall clock also counts other work on the machine; CPU time does not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from measure import machine, options, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from leaf_spine_program import solve_leafs

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.vclos.search import Found, Undecided, search_leafs
from ropewalk.tenancy.vclos.shapes import doubling

PLANTS = {2048: "leaf-spine:64x32x32", 8192: "leaf-spine:128x64x64", 32768: "leaf-spine:256x128x128"}
"""GPUs of a plant of switches with 64, 128 and 256 ports, all ports used."""
TREES = {2048: "fat-tree:32,8", 8192: "fat-tree:64,8", 32768: "fat-tree:64,32"}
"""The same numbers of GPUs on three tiers."""
SIZES = np.array([8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024])
CHANCES = np.array([10, 10, 15, 20, 4, 15, 4, 12, 6, 2, 2]) / 100


KINDS = (
    "allocate: one server or leaf",
    "allocate: several leafs",
    "allocate: no spines in common",
    "allocate: any",
    "allocate and place",
    "release",
    "drain and restore",
)


@dataclass
class Times:
    """(wall, CPU) milliseconds of every operation by its kind; seconds of integer programs."""

    taken: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    program: list[float] = field(default_factory=list)
    unproved: int = 0
    undecided: int = 0
    differing: int = 0
    used: list[float] = field(default_factory=list)


Answer = TypeVar("Answer")


def timed(work: Callable[[], Answer]) -> tuple[Answer, tuple[float, float]]:
    """An answer with its wall and CPU milliseconds."""
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    answer = work()
    wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
    return answer, (wall / 1e6, cpu / 1e6)


def measure(policy: str, gpus: int, events: int, programs: int, seed: int, plants: dict[int, str]) -> Times:
    """Times of all operations once the plant has filled up."""
    rng = np.random.default_rng(seed)
    chosen = POLICIES.named(policy)
    state = chosen.occupancy(plant(plants[gpus], gpus_per_server=8))
    allocate = chosen.make
    times = Times()
    # The time of a program grows fast with the plant; a few of them, evenly spread, tell enough.
    asked = np.linspace(events // 4, events - 1, programs).astype(int)
    pending = 0
    for event in range(events):
        if event == events // 4:
            times.taken = {kind: [] for kind in KINDS}  # before, the plant was filling up
        pending += int((asked == event).sum())
        if state.jobs and state.used > 0.9 * gpus:
            _release(state, rng, times)
        size = int(rng.choice(SIZES, p=CHANCES))
        answer, took = timed(partial(allocate, state, f"job{event}", size))
        kind = _kind(answer)
        times.taken[KINDS[3]].append(took)
        times.taken.setdefault(kind, []).append(took)
        times.used.append(state.used / gpus)
        if kind in KINDS[1:3] and pending > 0 and policy == "vclos":
            pending -= _compare(state, size, times)
        if isinstance(answer, Allocation):
            _, placing = timed(partial(state.place, answer))
            times.taken[KINDS[4]].append((took[0] + placing[0], took[1] + placing[1]))
        elif state.jobs:
            _release(state, rng, times)
        if event % 10 == 0:
            _drain(state, rng, times)
    return times


def _kind(answer: Allocation | Waiting) -> str:
    if isinstance(answer, Allocation):
        return KINDS[0] if answer.stage in ("server", "leaf") else KINDS[1]
    return KINDS[2] if answer.reason is Reason.NETWORK_FRAGMENTATION else answer.reason.value


def _release(state: Occupancy, rng: np.random.Generator, times: Times) -> None:
    job = list(state.jobs)[int(rng.integers(len(state.jobs)))]
    times.taken["release"].append(timed(partial(state.release, job))[1])


def _drain(state: Occupancy, rng: np.random.Generator, times: Times) -> None:
    where = state.plant
    leaf = int(rng.integers(where.leafs))
    kinds = [Drained(servers=[int(rng.integers(where.servers))])]
    if where.leaf_cables:  # servers behind patch panels have no links that could be drained
        link = (leaf, int(rng.choice(np.flatnonzero(where.cables[leaf]))))
        kinds += [Drained(spines=[link[1]]), Drained(links=[link])]
    parts = kinds[int(rng.integers(len(kinds)))]
    _, out = timed(partial(state.drain, parts))
    _, back = timed(partial(state.restore, parts))
    times.taken["drain and restore"].append((out[0] + back[0], out[1] + back[1]))


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


def _row(taken: list[tuple[float, float]]) -> list[str]:
    """How many, and their median, 99th of 100 and longest: wall, then CPU milliseconds."""
    if not taken:
        return ["0", *[""] * 6]
    return [
        str(len(taken)),
        *(f"{at:.3f}" for clock in np.array(taken).T for at in np.percentile(clock, [50, 99, 100])),
    ]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--gpus", type=int, nargs="*", default=list(PLANTS), choices=list(PLANTS))
    parser.add_argument("--policies", nargs="*", default=["vclos", "laas", "source"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--three-tiers", action="store_true", help="fat-trees, which have no program here")
    given = parser.parse_args()
    plants = TREES if given.three_tiers else PLANTS
    for policy in given.policies:
        refused = POLICIES.refusal(policy, (), plant(plants[2048], gpus_per_server=8))
        if refused is not None:
            parser.error(refused if given.three_tiers else f"{refused}, or add --three-tiers")
    events, programs = (200, 2) if given.quick else (given.events, given.programs)
    asks = 0 if given.three_tiers else programs
    rows, slowest, differing, asked = [], {}, 0, 0
    for policy in given.policies:
        measure(policy, 2048, 300, 0, 1, plants)  # compile
        for gpus in given.gpus[:1] if given.quick else given.gpus:
            times = measure(policy, gpus, events, asks if policy == "vclos" else 0, given.seed, plants)
            where = [policy, f"{gpus:,}", f"{np.mean(times.used[events // 4 :]):.1%}"]
            rows += [[*where, kind, *_row(times.taken[kind])] for kind in KINDS if times.taken[kind]]
            slowest[policy] = np.percentile(np.array(times.taken["allocate and place"]), 99, axis=0)
            differing, asked = differing + times.differing, asked + len(times.program)
            if times.program:
                program = np.percentile(1e3 * np.array(times.program), [50, 99])
                print(
                    f"{gpus} GPUs: {times.undecided} searches undecided, {times.unproved} not proved cheapest; "
                    f"the integer program takes {program[0]:.1f} ms (p50) and {program[1]:.1f} ms (p99) for the first "
                    f"shape of {len(times.program)} requests, {times.differing} answers differ"
                )
    heads = ("policy", "GPUs", "in use", "operation", "number", "p50 ms", "p99 ms", "most ms", "CPU p50", "p99", "most")
    table(f"allocations near saturation, wall and CPU milliseconds ({machine()})", heads, rows)
    told = ", ".join(f"{policy} {wall:.2f} ms (CPU {cpu:.2f})" for policy, (wall, cpu) in slowest.items())
    summary(f"allocate and place, p99 on the largest plant: {told}; {differing} of {asked} answers differ from HiGHS")


if __name__ == "__main__":
    main()
