"""Forests that reach the optimum, from a fabric to checked trees: CPU seconds, trees and depth."""

from __future__ import annotations

from measure import best_cpu, cpu, machine, options, short, summary, table
from ropewalk.collective.forest import all_gather_forest, all_reduce_forest
from ropewalk.collective.optimum import network_of
from ropewalk.fabric.expression import fabric

FABRICS = ("dgx-a100:2", "dgx-a100:4", "dgx-a100:8", "dgx-a100:16", "torus:8x8", "mesh:8x8", "leaf-spine:4x4x16")
QUICK = ("dgx-a100:2", "torus:4x4", "mesh:4x4")


def main() -> None:
    quick = options(__doc__).parse_args().quick
    print(f"collective forests: CPU seconds. {machine()}")
    all_reduce_forest(network_of(fabric("dgx-a100:2")))  # loads the kernel and the solver
    rows = []
    slowest = (0.0, "")
    for expression in QUICK if quick else FABRICS:
        network = network_of(fabric(expression))
        for name, grow in (("all-gather", all_gather_forest), ("all-reduce", all_reduce_forest)):
            forest, seconds = best_cpu(lambda grow=grow, network=network: grow(network), 2)  # type: ignore[misc]
            _, check_s = cpu(forest.check)
            slowest = max(slowest, (seconds, expression))
            hosts = f"{len(network.members)}"
            cells = [str(forest.algbw / 10**9), str(forest.depth), short(seconds), short(check_s)]
            rows.append([expression, hosts, name, *cells])
    table("Forests", ["fabric", "GPUs", "what", "GB/s", "depth", "grow CPU s", "check CPU s"], rows)
    summary(f"collective forests: at most {short(slowest[0])} CPU s ({slowest[1]})")


if __name__ == "__main__":
    main()
