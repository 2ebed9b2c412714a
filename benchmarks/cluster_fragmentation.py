"""How often jobs wait for the network alone: vClos over fixed cables against OCS-vClos over the same leafs and spines.

Both see the same requests. Jobs come in seeded random sizes; whenever more than a part of the GPUs is in use, random
jobs leave. After a warm-up every third state is asked for jobs of several sizes, which are not placed. Of the requests
for which there were GPUs and servers enough, the table counts those that no shape with dedicated links could hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from measure import machine, options, summary, table
from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors

PLANTS = ("leaf-spine:32x16x16", "leaf-spine:64x32x32")
FILLS = (0.5, 0.7, 0.8, 0.9)
SIZES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""GPUs; multiples of a server, odd parts among them."""
ASKED = (24, 32, 48, 64, 96, 128)


@dataclass
class Tally:
    """What became of the requests under one policy."""

    asked: int = 0
    placed: int = 0
    network: int = 0
    fill: list[float] = field(default_factory=list)


def churn(cluster: Plant, allocate: Allocate, fill: float, events: int, seed: int) -> Tally:
    """Let jobs come and go at a fill, and ask each state what it could hold."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice(SIZES, events).tolist()
    leave = rng.random(events).tolist()
    state, tally = Occupancy(cluster), Tally()
    for event, size in enumerate(sizes):
        got = allocate(state, f"job{event}", size)
        if isinstance(got, Allocation):
            state.place(got)
        while state.used > fill * cluster.gpus:
            names = list(state.jobs)
            state.release(names[int(leave[event] * len(names))])
        if event >= events // 3 and event % 3 == 0:
            tally.fill.append(state.used / cluster.gpus)
            _ask(state, allocate, tally)
    return tally


def _ask(state: Occupancy, allocate: Allocate, tally: Tally) -> None:
    for size in ASKED:
        got = allocate(state, "asked", size)
        blocked = isinstance(got, Waiting) and got.reason is Reason.NETWORK_FRAGMENTATION
        if blocked or isinstance(got, Allocation):
            tally.asked += 1
            tally.placed += not blocked
            tally.network += blocked


def rows_of(expression: str, fills: Sequence[float], events: int) -> list[list[str]]:
    electrical = plant(expression, gpus_per_server=4)
    optical = OpticalPlant.of_plant(electrical)
    policies: list[tuple[str, Plant, Allocate]] = [
        ("vclos", electrical, vclos()),
        ("vclos-all-divisors", electrical, vclos(all_divisors)),
        ("ocs-vclos", optical, ocs_vclos),
        ("ocs-vclos-all-divisors", optical, ocs_vclos_all_divisors),
    ]
    rows = []
    for fill in fills:
        for name, cluster, allocate in policies:
            tally = churn(cluster, allocate, fill, events, seed=1)
            share = f"{tally.network / tally.asked:.1%}" if tally.asked else "-"
            counts = str(tally.asked), str(tally.placed), share
            rows.append([expression, name, f"{fill:.0%}", f"{np.mean(tally.fill):.1%}", *counts])
    return rows


def main() -> None:
    chosen = options(__doc__).parse_args()
    print(f"requests that wait for the network alone. {machine()}")
    plants = PLANTS[:1] if chosen.quick else PLANTS
    events = 60 if chosen.quick else 180
    rows = [row for expression in plants for row in rows_of(expression, FILLS[-2:] if chosen.quick else FILLS, events)]
    heads = ["plant", "policy", "most in use", "in use", "could have GPUs", "placed", "wait for the network"]
    table("the same requests over fixed cables and over circuits", heads, rows)
    fullest = {row[1]: row[-1] for row in rows}  # the last fill of the last plant
    summary("requests that wait for the network alone at the highest fill: " + ", ".join(
        f"{name} {share}" for name, share in fullest.items()
    ))  # fmt: skip


if __name__ == "__main__":
    main()
