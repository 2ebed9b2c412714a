"""Against SimGrid: the same flows over the same links, both simulators side by side.

Every flow has the same path on both sides (D-mod-K on a fat-tree, handed to SimGrid link by link), all start at 0.
SimGrid runs its plain max-min model (CM02, no latency, no cross-traffic) in the Python that Debian's python3-simgrid
installs it for. CPU seconds count the simulation; building the platform, and starting Numba, stand apart.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import best_cpu, cpu, machine, options, short, summary, table, warm_up
from ropewalk.fabric import FatTree
from ropewalk.routing import Routes, dmodk
from ropewalk.sim import Trace, simulate
from ropewalk.task import TaskGraph, TaskKind, make_graph
from startup import kernel_start

BANDWIDTH = 5e9
AGREEMENT = 1e-6
"""Relative difference of times that counts as equal; SimGrid's own precision is of this order."""

INSTALL = "apt-get install python3-simgrid (Debian 12), or --simgrid-python PATH of a Python that has the binding"


@dataclass(frozen=True, eq=False)
class Case:
    """One batch of flows that start together."""

    name: str
    radix: int
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    size_bytes: NDArray[np.float64]
    repeats: int
    """Short runs are repeated and the least counts, on both sides."""


@dataclass(frozen=True, eq=False)
class Ours:
    build_s: float
    plain_s: float
    symmetric_s: float
    end_s: NDArray[np.float64]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--simgrid-python", default=_debian_python(), help="the Python that can import simgrid")
    chosen = parser.parse_args()
    available = _has_simgrid(chosen.simgrid_python)
    print(f"against SimGrid: CPU seconds of both simulators on the same flows. {machine()}")
    if not available:
        print(f"SimGrid is missing, only our side is measured. To compare: {INSTALL}")
    warm_up()
    rows, disagreements = [], []
    for case in _cases(chosen.quick):
        graph, routes, build_s = _instance(case)
        ours = _run_ours(case, graph, routes, build_s)
        theirs = _run_simgrid(chosen.simgrid_python, case, routes) if available else None
        rows.append(_row(case, ours, theirs))
        if theirs is not None:
            apart = _apart(ours, theirs)
            if apart > AGREEMENT:
                disagreements.append(f"{case.name}: times differ by {apart:.1e}")
            ratio = theirs["run_cpu_s"] / ours.plain_s
            summary(
                f"{case.name}: {ratio:.1f}x SimGrid {theirs['version']} "
                f"({short(ours.plain_s)} against {short(theirs['run_cpu_s'])} CPU s), times equal within {apart:.0e}"
            )
    table(
        "The same flows in both simulators (ours without symmetry; beside it, with)",
        ["flows", "number", "last end ms", "SimGrid CPU s", "ours CPU s", "ratio", "symmetric", "end apart",
         "flow apart", "build SimGrid", "build ours"],
        rows,
    )  # fmt: skip
    if not chosen.quick:
        cold, warm = kernel_start()
        print(f"\nnot in these figures: Numba starts in {short(cold['wall_s'])} s the first time, "
              f"{short(warm['wall_s'])} s later")  # fmt: skip
    if disagreements:
        raise SystemExit("\n".join(disagreements))


def _cases(quick: bool) -> list[Case]:
    small, large = (4, 8) if quick else (8, 16)
    hosts, many = small**3 // 4, large**3 // 4
    src, dst = (end.astype(np.int32) for end in np.nonzero(~np.eye(hosts, dtype=bool)))
    mixed = 1e6 * (0.5 + (7919 * src + 104729 * dst) % 1000 / 1000)
    # One cycle through all hosts in random order: a permutation in which nobody sends to himself.
    order = np.random.default_rng(1).permutation(many).astype(np.int32)
    every = np.arange(many, dtype=np.int32)
    return [
        Case(f"all-to-all, {hosts} hosts, 1 MB each", small, src, dst, np.full(len(src), 1e6), 3),
        Case(f"all-to-all, {hosts} hosts, 0.5 to 1.5 MB", small, src, dst, mixed.round(), 1),
        Case(f"permutation, {many} hosts, 10 MB", large, order, np.roll(order, -1), np.full(many, 1e7), 5),
        Case(f"ring step, {many} hosts, 10 MB", large, every, (every + 1) % many, np.full(many, 1e7), 5),
    ]


def _instance(case: Case) -> tuple[TaskGraph, Routes, float]:
    """The flows as a task graph over D-mod-K routes, and what it took to make them."""

    def build() -> tuple[TaskGraph, Routes]:
        routes = dmodk(FatTree(case.radix, bandwidth=BANDWIDTH).build(), case.src, case.dst)
        flows = len(case.src)
        kind = np.full(flows, TaskKind.TRANSFER)
        return make_graph(kind, case.src, case.dst, case.size_bytes, np.zeros(flows + 1, np.int64), []), routes

    (graph, routes), build_s = cpu(build)
    return graph, routes, build_s


def _run_ours(case: Case, graph: TaskGraph, routes: Routes, build_s: float) -> Ours:
    def run(symmetry: bool) -> Trace:
        return simulate(graph, routes, symmetry=symmetry)

    trace, plain_s = best_cpu(lambda: run(False), case.repeats)
    _, symmetric_s = best_cpu(lambda: run(True), case.repeats)
    return Ours(build_s, plain_s, symmetric_s, trace.end)


def _run_simgrid(python: str, case: Case, routes: Routes) -> dict[str, Any]:
    """SimGrid's answer to the same flows, each on our links in our order; the least CPU time of the repeats."""
    row = routes.find(case.src, case.dst)
    first, last = routes.link_start[row].tolist(), routes.link_start[row + 1].tolist()
    link = routes.link.tolist()
    problem = {
        "hosts": routes.fabric.hosts,
        "bandwidth": routes.fabric.bandwidth.tolist(),
        "flows": [
            [src, dst, size_bytes, link[begin:end]]
            for src, dst, size_bytes, begin, end in zip(
                case.src.tolist(), case.dst.tolist(), case.size_bytes.tolist(), first, last, strict=True
            )
        ],
    }
    text = json.dumps(problem)
    side = str(Path(__file__).with_name("simgrid_side.py"))
    answers = [
        json.loads(
            subprocess.run([python, side], input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=True).stdout
        )
        for _ in range(case.repeats)
    ]  # fmt: skip
    best: dict[str, Any] = min(answers, key=lambda answer: float(answer["run_cpu_s"]))
    return best


def _apart(ours: Ours, theirs: dict[str, Any]) -> float:
    """The largest relative difference of any flow's end."""
    end_s = np.array(theirs["finish_s"])
    return float(np.max(np.abs(ours.end_s - end_s) / end_s))


def _row(case: Case, ours: Ours, theirs: dict[str, Any] | None) -> list[str]:
    row = [case.name, f"{len(case.src):,}", f"{ours.end_s.max() * 1e3:.6f}"]
    if theirs is None:
        return [*row, "-", short(ours.plain_s), "-", short(ours.symmetric_s), "-", "-", "-", short(ours.build_s)]
    end_apart = abs(ours.end_s.max() - theirs["clock_s"]) / theirs["clock_s"]
    return [
        *row, short(theirs["run_cpu_s"]), short(ours.plain_s), f"{theirs['run_cpu_s'] / ours.plain_s:.1f}",
        short(ours.symmetric_s), f"{end_apart:.1e}", f"{_apart(ours, theirs):.1e}",
        short(theirs["build_cpu_s"]), short(ours.build_s),
    ]  # fmt: skip


def _debian_python() -> str:
    return shutil.which("python3", path="/usr/bin") or "python3"


def _has_simgrid(python: str) -> bool:
    return (
        shutil.which(python) is not None
        and not subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False).returncode
    )


if __name__ == "__main__":
    main()
