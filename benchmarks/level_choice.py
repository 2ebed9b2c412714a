"""Does `--level auto` keep its promise? Where it is content with flows that carry headers, packets must agree to 2.5 %.

    python benchmarks/level_choice.py [--quick]

Collectives over fabrics, sizes, speeds, latencies, packet sizes and routings, and random task graphs: how often flows
are trusted, and how far they are off at worst. The tests ask a part of these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from measure import machine, options, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from random_transfers import random_transfers

from ropewalk import sync
from ropewalk.fabric.expression import fabric as read_fabric
from ropewalk.routing import router_for
from ropewalk.sim.level import LevelUse, PacketOptions, run_at_level
from ropewalk.sync import SyncQuestion

PROMISE = 0.025
BASE = SyncQuestion(
    logical=("ps", "ps-sharded", "mesh", "ring", "halving-doubling", "hips"),
    physical=("fat-tree:4", "bcube:4,2", "torus:4x4", "switch:16", "leaf-spine"), hosts=(16,),
    sizes=(64_000, 1_000_000), bandwidths=(5e9,), start_up_s=0.0, hop_latency_s=1e-6,
)  # fmt: skip
VARIED: dict[str, dict[str, Any]] = {
    "16 kB to 4 MB": {"sizes": (16_000, 64_000, 256_000, 1_000_000, 4_000_000)},
    "wires without length": {"hop_latency_s": 0.0},
    "10 us to start": {"start_up_s": 10e-6},
    "10 Gbps": {"bandwidths": (1.25e9,)},
    "100 Gbps": {"bandwidths": (12.5e9,)},
    "packets of 4,096 bytes": {"sizes": (256_000, 4_000_000), "packet": PacketOptions(payload_bytes=4096)},
    "paused only": {"transports": ("rdma-pfc",)},
    "hashed and sprayed": {"physical": ("fat-tree:4",), "routing": ("murmur", "ecmp", "spray")},
    "hashed, paused only": {
        "physical": ("fat-tree:4",), "routing": ("murmur", "ecmp", "ecmp-polarised"), "transports": ("rdma-pfc",),
    },
    "64 hosts": {"physical": ("bcube:8,2", "torus:8x8"), "sizes": (1_000_000,)},
}  # fmt: skip
GRAPHS_ON = ("switch:8", "fat-tree:4", "torus:4x4", "bcube:4,2")


def of_collectives(question: SyncQuestion) -> Iterator[float | None]:
    """For each combination how far flows with headers are off, or None where `auto` takes packets."""
    packets = sync.answer(replace(question, levels=("packet",))).rows
    for chosen, row in zip(sync.answer(replace(question, levels=("auto",))).rows, packets, strict=True):
        yield chosen.sync_time_s / row.sync_time_s - 1 if chosen.level == "wire" else None


def of_graphs(name: str, graphs: int) -> Iterator[float | None]:
    """The same for random task graphs."""
    fabric = read_fabric(name, bandwidth=5e9, latency=1e-6)
    for seed in range(graphs):
        graph = random_transfers(fabric.hosts, seed)
        routes = router_for(fabric).make(0)(fabric, graph.place, graph.peer)
        auto = run_at_level(graph, routes, LevelUse("auto"))
        if auto.level == "wire":
            packets = run_at_level(graph, routes, LevelUse("packet"))
            yield auto.trace.makespan / packets.trace.makespan - 1
        else:
            yield None


def main() -> None:
    given = options(__doc__).parse_args()
    found = {
        label: list(of_collectives(replace(BASE, **changes)))
        for label, changes in (list(VARIED.items())[:2] if given.quick else VARIED.items())
    }
    found |= {f"random graphs, {name}": list(of_graphs(name, 20 if given.quick else 200)) for name in GRAPHS_ON}
    rows = []
    for label, offs in found.items():
        trusted = [off for off in offs if off is not None]
        worst = max(trusted, key=abs, default=0.0)
        rows.append((label, str(len(offs)), str(len(trusted)), f"{100 * worst:+.2f} %"))
    table(f"flows with headers against packets, {machine()}", ("what", "runs", "flows trusted", "worst"), rows)
    every = [off for offs in found.values() for off in offs if off is not None]
    broken = sum(abs(off) > PROMISE for off in every)
    summary(f"auto trusts flows in {len(every)} runs, {broken} of them off by more than {100 * PROMISE:.1f} %")
    if broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
