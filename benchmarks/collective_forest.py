"""Forests that reach the optimum, from a fabric to checked trees: CPU seconds, trees and depth."""

from __future__ import annotations

from dataclasses import replace

from measure import best_cpu, cpu, machine, options, short, summary, table
from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest
from ropewalk.collectives.optimum import network_of
from ropewalk.fabric.expression import fabric

FABRICS = (
    "dgx-a100:8", "torus:8x8", "mesh:8x8", "leaf-spine:4x4x16", "dragonfly:9,4,2,2", "random-regular:64,4",
    "dgx-a100:16", "torus:16x8", "mesh:16x8", "leaf-spine:8x4x16", "fat-tree:8", "hypercube:7",
)  # fmt: skip
"""Grown without the help of symmetry, as if one link of each were a little slower."""
SYMMETRIC = (
    "torus:32x32", "torus:16x8x8", "hypercube:10", "dgx-a100:128", "leaf-spine:64x4x16", "fat-tree:16", "bcube:4,5",
)  # fmt: skip
QUICK = ("dgx-a100:2", "torus:4x4", "mesh:4x4")
QUICK_SYMMETRIC = ("torus:8x8", "dgx-a100:8")


def main() -> None:
    quick = options(__doc__).parse_args().quick
    print(f"collective forests: CPU seconds. {machine()}")
    all_reduce_forest(network_of(fabric("dgx-a100:2")))  # loads the kernel and the solver
    rows = []
    slowest = (0.0, "")
    plain, symmetric = (QUICK, QUICK_SYMMETRIC) if quick else (FABRICS, SYMMETRIC)
    for expression in (*plain, *symmetric):
        network = network_of(fabric(expression))
        if expression not in symmetric:
            network = replace(network, symmetry=None)
        for name, grow in (("all-gather", all_gather_forest), ("all-reduce", all_reduce_forest)):
            forest, seconds = best_cpu(lambda grow=grow, network=network: grow(network), 2)  # type: ignore[misc]
            _, check_s = cpu(forest.check)
            slowest = max(slowest, (seconds, expression))
            hosts, alike = f"{len(network.members)}", "yes" if network.symmetry is not None else "no"
            cells = [f"{float(forest.algbw) / 1e9:.6g}", str(forest.depth), short(seconds), short(check_s)]
            rows.append([expression, hosts, alike, name, *cells])
    table("Forests", ["fabric", "GPUs", "symmetry", "what", "GB/s", "depth", "grow CPU s", "check CPU s"], rows)
    summary(f"collective forests: at most {short(slowest[0])} CPU s ({slowest[1]})")


if __name__ == "__main__":
    main()
