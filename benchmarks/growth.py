"""How time and memory grow with transfers and with hosts, with and without symmetry; draws docs/images/growth.svg.

Every measurement has a process of its own, so that its peak memory is its own; loading the kernels is not counted.
Seconds are CPU seconds from the first line of the program to the checked result, building included.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chart import Panel, Series, write_chart
from measure import cpu, in_a_fresh_process, machine, options, peak_mib, short, summary, table, warm_up
from ropewalk.collectives.cost import closed_form
from ropewalk.collectives.table import program_on
from ropewalk.fabric import Fabric, FatTree
from ropewalk.fabric.expression import builder
from ropewalk.routing import Routes, default_router_name, dmodk, router_for
from ropewalk.sim import simulate, simulate_rounds
from ropewalk.task import Lockstep, TaskGraph, TaskKind, lockstep, make_graph, unroll

CHART = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"

SIZE_BYTES, BANDWIDTH, START_UP_S = 64e6, 5e9, 10e-6
EQUAL = 1e-9
"""Relative difference from the closed form that counts as equal: rounding over tens of thousands of rounds."""


@dataclass(frozen=True)
class Run:
    """One measurement: a collective on a fabric, or permutations in the given number of rounds."""

    logical: str
    physical: str
    symmetry: bool
    rounds: int = 0

    def measure(self) -> dict[str, Any]:
        """The answer of a fresh process."""
        return in_a_fresh_process(__file__, "--one", json.dumps(vars(self)))


RING_HOSTS = (71, 224, 708, 2237)
"""A ring all-reduce of N hosts has 2(N-1)N transfers: 10⁴, 10⁵, 10⁶ and 10⁷ of them."""

PERMUTATION_ROUNDS = (78, 781, 7_812, 78_125)
"""On 128 hosts: 10⁴, 10⁵, 10⁶ and 10⁷ transfers."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--one", help="measure one run, given as JSON, in this process")
    parser.add_argument(
        "--chart", type=Path, default=None, help=f"where to draw (default {CHART.name}; quick: nowhere)"
    )
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_measured(Run(**json.loads(chosen.one)))))
        return
    print(f"growth: CPU seconds and peak memory, each run in its own process. {machine()}")
    path = chosen.chart or (None if chosen.quick else CHART)
    # If the kernels have to be compiled, that happens now and is in nobody's figures.
    Run("ring", "switch:4", True).measure()
    by_transfers = _by_transfers(2 if chosen.quick else 4)
    by_hosts = _by_hosts(256 if chosen.quick else 16_384)
    _largest("16x16" if chosen.quick else "128x128")
    if path is not None:
        write_chart([*_transfer_panels(by_transfers), _host_panel(by_hosts)], path)
        print(f"\ndrawn: {path}")


Answers = dict[str, list[dict[str, Any]]]


def _by_transfers(sizes: int) -> Answers:
    answers: Answers = {
        "ring all-reduce on a switch": [
            Run("ring", f"switch:{hosts}", False).measure() for hosts in RING_HOSTS[:sizes]
        ],
        "random permutations on a fat-tree": [
            Run("permutations", "fat-tree:8", False, rounds).measure() for rounds in PERMUTATION_ROUNDS[:sizes]
        ],
        "ring all-reduce, by symmetry": [
            Run("ring", f"switch:{hosts}", True).measure() for hosts in RING_HOSTS[:sizes]
        ],
    }
    table(
        "Against the number of transfers",
        ["what", "transfers", "build s", "run s", "µs/transfer", "peak MiB", "bytes/transfer", "time steps"],
        [[name, *_cells(answer)] for name, group in answers.items() for answer in group],
    )
    for name, group in answers.items():
        last = group[-1]
        summary(
            f"{name}: {last['transfers']:.3g} transfers in {short(_seconds(last))} CPU s, "
            f"{last['peak_mib'] / 1024:.2f} GiB at most"
        )
    return answers


def _cells(answer: dict[str, Any]) -> list[str]:
    transfers = answer["transfers"]
    return [
        f"{transfers:,}", short(answer["build_s"]), short(answer["run_s"]), f"{_seconds(answer) / transfers * 1e6:.3g}",
        f"{answer['peak_mib']:.0f}", f"{_own_bytes(answer) / transfers:.3g}", f"{answer['steps']:,}",
    ]  # fmt: skip


def _by_hosts(most: int) -> Answers:
    rings = [hosts for hosts in (64, 256, 1024, 4096, 16_384) if hosts <= most]
    sides = [side for side in (8, 16, 32, 64, 128) if side * side <= most]
    answers: Answers = {
        "ring on a switch, plain": [Run("ring", f"switch:{n}", False).measure() for n in rings if n <= 1024],
        "ring on a switch, by symmetry": [Run("ring", f"switch:{n}", True).measure() for n in rings],
        "HiPS on a torus, plain": [Run("hips", f"torus:{n}x{n}", False).measure() for n in sides if n <= 64],
        "HiPS on a torus, by symmetry": [Run("hips", f"torus:{n}x{n}", True).measure() for n in sides],
    }
    table(
        "Against the number of hosts (plain runs end where symmetry is the only sensible way)",
        ["what", "hosts", "transfers", "classes", "build s", "run s", "peak MiB", "from closed form"],
        [
            [name, f"{answer['hosts']:,}", f"{answer['transfers']:,}", f"{answer['classes']:,}",
             short(answer["build_s"]), short(answer["run_s"]), f"{answer['peak_mib']:.0f}", f"{answer['apart']:.0e}"]
            for name, group in answers.items()
            for answer in group
        ],
    )  # fmt: skip
    return answers


def _largest(shape: str) -> None:
    """The largest fabrics, by symmetry, against the closed form."""
    side = shape.split("x")[0]
    runs = [
        Run(logical, physical, True)
        for logical, physical in (
            ("ring", f"switch:{int(side) ** 2}"),
            ("ring", f"torus:{shape}"),
            ("hips", f"torus:{shape}"),
            ("hips", f"bcube:{side},2"),
        )
    ]
    answers = [run.measure() for run in runs]
    table(
        "The largest fabrics by symmetry, 64 MB at 40 Gbps, 10 us per round",
        ["what", "transfers", "classes", "simulated ms", "closed form ms", "apart", "build s", "run s", "peak MiB"],
        [
            [f"{run.logical} on {run.physical}", f"{answer['transfers']:,}", f"{answer['classes']:,}",
             f"{answer['makespan_s'] * 1e3:.4f}", f"{answer['closed_s'] * 1e3:.4f}", f"{answer['apart']:.0e}",
             short(answer["build_s"]), short(answer["run_s"]), f"{answer['peak_mib']:.0f}"]
            for run, answer in zip(runs, answers, strict=True)
        ],
    )  # fmt: skip
    for run, answer in zip(runs, answers, strict=True):
        if answer["apart"] > EQUAL:
            raise SystemExit(f"{run.logical} on {run.physical} is {answer['apart']:.1e} from its closed form")
    slowest = max(_seconds(answer) for answer in answers)
    summary(f"{int(side) ** 2:,} hosts by symmetry: equal to the closed form, {short(slowest)} CPU s at most")


def _measured(run: Run) -> dict[str, Any]:
    """One run in this process: what it took beyond the interpreter and the kernels."""
    warm_up()
    before = peak_mib()
    answer = _permutations(run) if run.logical == "permutations" else _collective(run)
    return {**answer, "base_mib": before, "peak_mib": peak_mib()}


def _collective(run: Run) -> dict[str, Any]:
    def build() -> tuple[Fabric, Lockstep, Routes, TaskGraph | None]:
        fabric = builder(run.physical, BANDWIDTH).build()
        rounds = lockstep(program_on(fabric, run.logical), SIZE_BYTES, START_UP_S)
        routes = router_for(fabric).make(0)(fabric, *rounds.all_pairs())
        return fabric, rounds, routes, None if run.symmetry else unroll(rounds)

    (fabric, rounds, routes, graph), build_s = cpu(build)
    trace, run_s = cpu(
        lambda: simulate_rounds(rounds, routes) if graph is None else simulate(graph, routes, symmetry=False)
    )
    assert fabric.builder is not None
    form = closed_form(run.logical, fabric.builder, default_router_name(fabric))
    assert form is not None
    closed_s = form.seconds(SIZE_BYTES, BANDWIDTH, START_UP_S)
    return {
        "hosts": fabric.hosts, "transfers": rounds.transfers, "classes": trace.classes, "steps": trace.steps,
        "makespan_s": trace.makespan, "closed_s": closed_s, "apart": abs(trace.makespan / closed_s - 1),
        "build_s": build_s, "run_s": run_s,
    }  # fmt: skip


def _permutations(run: Run) -> dict[str, Any]:
    """Rounds of random permutations of 1 MB: no two rounds alike, nothing for symmetry to find."""
    tree = FatTree(8, bandwidth=BANDWIDTH)

    def build() -> tuple[TaskGraph, Routes]:
        graph = permutation_rounds(tree.hosts, run.rounds)
        return graph, dmodk(tree.build(), graph.place, graph.peer)

    (graph, routes), build_s = cpu(build)
    trace, run_s = cpu(lambda: simulate(graph, routes, symmetry=False))
    return {
        "hosts": tree.hosts, "transfers": graph.tasks, "classes": trace.classes, "steps": trace.steps,
        "makespan_s": trace.makespan, "build_s": build_s, "run_s": run_s,
    }  # fmt: skip


def permutation_rounds(hosts: int, rounds: int) -> TaskGraph:
    """Every host sends 1 MB a round, each round in another order; it goes on when it has sent and received."""
    random = np.random.default_rng(1)
    order = random.permuted(np.tile(np.arange(hosts, dtype=np.int32), (rounds, 1)), axis=1)
    row = np.arange(rounds)[:, None]
    peer = np.empty_like(order)
    peer[row, order] = np.roll(order, -1, axis=1)
    sender = np.empty_like(order)
    sender[row, peer] = np.arange(hosts)
    # A host waits for its own transfer of the round before and for the one that came to it.
    first_task = (np.arange(rounds - 1) * hosts)[:, None]
    dep = np.stack([first_task + np.arange(hosts), first_task + sender[:-1]], axis=2)
    waits = np.repeat([0, 2], [hosts, (rounds - 1) * hosts])
    return make_graph(
        np.full(rounds * hosts, TaskKind.TRANSFER),
        np.tile(np.arange(hosts), rounds),
        peer.ravel(),
        1e6,
        np.concatenate([[0], np.cumsum(waits)]),
        dep.ravel(),
        start_up=START_UP_S,
    )


def _seconds(answer: dict[str, Any]) -> float:
    return float(answer["build_s"] + answer["run_s"])


def _own_bytes(answer: dict[str, Any]) -> float:
    return float(answer["peak_mib"] - answer["base_mib"]) * 2**20


def _transfer_panels(answers: Answers) -> list[Panel]:
    def series(value: Callable[[dict[str, Any]], float]) -> list[Series]:
        return [Series(name, [(one["transfers"], value(one)) for one in group]) for name, group in answers.items()]

    return [
        Panel("Time against transfers", "transfers", "CPU seconds", series(_seconds)),
        Panel("Memory against transfers", "transfers", "peak MiB", series(lambda one: one["peak_mib"])),
    ]


def _host_panel(answers: Answers) -> Panel:
    series = [Series(name, [(one["hosts"], _seconds(one)) for one in group]) for name, group in answers.items()]
    return Panel("Time of one all-reduce against hosts", "hosts", "CPU seconds", series)


if __name__ == "__main__":
    main()
