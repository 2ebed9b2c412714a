"""TopologyFinder from demands to cables and patch list at 128, 432 and 1,008 servers: CPU seconds and memory.

Every measurement has a process of its own, so that its peak memory is its own; loading the kernels is not counted.
1,008 servers are the most that one layer of patch panels reaches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from measure import cpu, in_a_fresh_process, machine, options, peak_mib, short, summary, table
from ropewalk.codesign.blossom import heaviest_matching
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topology
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.planes import patch_list
from ropewalk.codesign.selection import jointly, per_group
from ropewalk.strategy.seating import coset

SELECTIONS = {"published rule": per_group(paper_jumps), "best rings": jointly}

SHARES = {"sums only": 0.0, "a tenth between pairs": 0.1, "half between pairs": 0.5, "most between pairs": 0.9}
"""How much of the bytes goes between pairs; every pair has demand, and no two pairs the same."""

FEW = "half between 16 servers"
"""Only these talk in pairs, so that most ports for pairs are free to shorten ways."""


@dataclass(frozen=True)
class Run:
    """One measurement."""

    servers: int
    degree: int
    demand: str
    selection: str
    duplex: bool

    def measure(self) -> dict[str, Any]:
        """The answer of a fresh process."""
        return in_a_fresh_process(__file__, "--one", json.dumps(vars(self)))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--one", help="measure one run, given as JSON, in this process")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_measured(Run(**json.loads(chosen.one)))))
        return
    print(f"topology finder: CPU seconds and peak memory, each run in its own process. {machine()}")
    sizes = (32, 128) if chosen.quick else (128, 432, 1008)
    runs = [
        *(Run(n, 8, demand, "published rule", duplex) for duplex in (True, False) for demand in SHARES for n in sizes),
        *(Run(n, 8, FEW, "published rule", True) for n in sizes),
        *(Run(n, 8, demand, "best rings", True) for demand in ("sums only", "a tenth between pairs") for n in sizes),
    ]
    runs[0].measure()  # If the kernels have to be compiled, that happens now and is in nobody's figures.
    answers = [run.measure() for run in runs]
    table(
        "From demands to cables and patch list, 8 ports",
        ["demand, rings, cables", "servers", "d_A", "d_MP", "find s", "patch s", "panels", "peak MiB"],
        [
            [f"{run.demand}, {run.selection}, {'duplex' if run.duplex else 'simplex'}", f"{run.servers:,}",
             str(answer["degree_sums"]), str(answer["degree_pairs"]), short(answer["find_s"]), short(answer["patch_s"]),
             str(answer["planes"]), f"{answer['peak_mib']:.0f}"]
            for run, answer in zip(runs, answers, strict=True)
        ],
    )  # fmt: skip
    _against_networkx((16, 32) if chosen.quick else (32, 64, 128))
    worst = max((answer["find_s"] + answer["patch_s"], run.servers) for run, answer in zip(runs, answers, strict=True))
    most = max(answer["peak_mib"] for answer in answers)
    summary(f"topology finder: at most {short(worst[0])} CPU s ({worst[1]:,} servers, 8 ports), {most:.0f} MiB")


def _measured(run: Run) -> dict[str, Any]:
    """One run in this process, after a small one that loads everything."""
    _found(Run(8, 4, "most between pairs", run.selection, run.duplex))
    return _found(run)


def _found(run: Run) -> dict[str, Any]:
    draw, share = np.random.default_rng(0), SHARES.get(run.demand, 0.5)
    sums = tuple(GroupSum(coset(run.servers, size), 1e9) for size in (run.servers, run.servers // 2))
    pairs = draw.uniform(0.5, 1.5, (run.servers, run.servers)) * (1 - np.eye(run.servers))
    if run.demand == FEW:
        pairs[16:], pairs[:, 16:] = 0.0, 0.0
    pairs *= share / (1 - share) * sum(group.wire_bytes for group in sums) / pairs.sum()
    demands = Demands(run.servers, sums, pairs)
    wiring, find_s = cpu(
        lambda: find_topology(
            demands, degree=run.degree, bandwidth=12.5e9, duplex=run.duplex, selection=SELECTIONS[run.selection]
        )
    )
    patched, patch_s = cpu(lambda: patch_list(wiring))
    return {
        "degree_sums": wiring.degree_sums, "degree_pairs": wiring.degree_pairs, "find_s": find_s, "patch_s": patch_s,
        "planes": patched.planes, "peak_mib": peak_mib(),
    }  # fmt: skip


def _against_networkx(sizes: tuple[int, ...]) -> None:
    """The same heaviest matching by NetworkX's blossoms in plain Python, and by the kernel."""
    heaviest_matching(np.zeros((2, 2), np.int64))
    rows = []
    for n in sizes:
        upper = np.triu(np.random.default_rng(n).integers(1, 2**40, (n, n)), 1)
        weights = upper + upper.T
        graph = nx.Graph()
        graph.add_weighted_edges_from((a, b, int(weights[a, b])) for a in range(n) for b in range(a))
        theirs, theirs_s = cpu(lambda graph=graph: nx.max_weight_matching(graph))  # type: ignore[misc]
        mate, ours_s = cpu(lambda weights=weights: heaviest_matching(weights))  # type: ignore[misc]
        if 2 * sum(int(weights[a, b]) for a, b in theirs) != int(weights[np.arange(n), mate][mate >= 0].sum()):
            raise SystemExit(f"the matchings of {n} servers do not weigh the same")
        rows.append([f"{n} servers, all pairs", short(theirs_s), f"{ours_s:.4f}", f"{theirs_s / ours_s:.0f}"])
    table("One heaviest matching of the same weight", ["graph", "NetworkX s", "ours s", "ratio"], rows)


if __name__ == "__main__":
    main()
