"""Optima of collectives on fabrics of up to 1,024 GPUs: CPU seconds from a fabric to a proved fraction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from measure import best_cpu, machine, options, short, summary, table
from ropewalk.collectives.optimum import Network, Optimum, all_gather, all_reduce, all_to_all, network_of
from ropewalk.fabric import Fabric
from ropewalk.fabric.expression import fabric

COLLECTIVES = {"all-gather": all_gather, "all-reduce": all_reduce, "all-to-all": all_to_all}

LARGE = {
    "torus:32x32": tuple(COLLECTIVES),
    "mesh:32x32": ("all-gather", "all-reduce"),
    "hypercube:10": tuple(COLLECTIVES),
    "leaf-spine:32x16x32": tuple(COLLECTIVES),
    "fat-tree:16": tuple(COLLECTIVES),
    "dgx-a100:128": ("all-gather", "all-reduce"),
    "dgx-h100:128": ("all-gather", "all-reduce"),
}
"""An all-to-all of hosts that are not all alike has a variable for every pair of host and link: too many here."""

SMALL = {"torus:4x4": tuple(COLLECTIVES), "mesh:4x4": tuple(COLLECTIVES), "dgx-a100:2": tuple(COLLECTIVES)}


def main() -> None:
    quick = options(__doc__).parse_args().quick
    print(f"collective optima: CPU seconds. {machine()}")
    for collective in COLLECTIVES.values():
        collective(network_of(fabric("dgx-a100:2")))  # loads the kernel and the solver
    rows: list[list[str]] = []
    slowest = 0.0
    for expression, names in (SMALL if quick else LARGE).items():
        built = fabric(expression)
        model, modelling_s = best_cpu(lambda built=built: network_of(built), 2)  # type: ignore[misc]
        rows.append([expression, f"{built.hosts:,}", "the model", "", "", short(modelling_s)])
        for name in names:
            found, seconds = _timed(COLLECTIVES[name], model)
            slowest = max(slowest, seconds)
            rows.append([expression, f"{built.hosts:,}", name, _gbps(found), str(found.exact), short(seconds)])
    rows += _without_symmetry(("torus:4x4",) if quick else ("torus:32x32", "hypercube:10", "leaf-spine:32x16x32"))
    rows += _with_a_slow_nic(("dgx-a100:2",) if quick else ("dgx-a100:2", "dgx-a100:8"))
    table("Optima", ["fabric", "GPUs", "what", "GB/s", "proved", "CPU s"], rows)
    summary(f"collective optima: at most {short(slowest)} CPU s on {16 if quick else 1024:,} GPUs")


def _without_symmetry(expressions: tuple[str, ...]) -> list[list[str]]:
    """The same all-gather when every host is asked, as on a fabric from a file."""
    rows = []
    for expression in expressions:
        model = replace(network_of(fabric(expression)), symmetry=None)
        found, seconds = _timed(all_gather, model)
        hosts = f"{len(model.members):,}"
        rows.append([f"{expression}, any host", hosts, "all-gather", _gbps(found), str(found.exact), short(seconds)])
    return rows


def _with_a_slow_nic(expressions: tuple[str, ...]) -> list[list[str]]:
    """One NIC at a quarter of its speed: nothing is alike any more, and the two halves are not optimal."""
    rows = []
    for expression in expressions:
        built = fabric(expression)
        model = network_of(replace(built, bandwidth=_one_slow_nic(built)))
        found, seconds = _timed(all_reduce, model)
        hosts = f"{len(model.members):,}"
        rows.append([f"{expression}, slow NIC", hosts, "all-reduce", _gbps(found), str(found.exact), short(seconds)])
    return rows


def _one_slow_nic(built: Fabric) -> NDArray[np.float64]:
    bandwidth = built.bandwidth.copy()
    first_nic = 2 * built.hosts  # the cables of NVLink come first, each both ways
    bandwidth[first_nic : first_nic + 2] /= 4
    return bandwidth


def _timed(collective: Callable[[Network], Optimum], model: Network) -> tuple[Optimum, float]:
    return best_cpu(lambda: collective(model), 2)


def _gbps(found: Optimum) -> str:
    value = found.algbw / 10**9
    return str(value) if isinstance(value, Fraction) else f"{value:.6f}"


if __name__ == "__main__":
    main()
