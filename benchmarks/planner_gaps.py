"""How far the best strategy that `ropewalk plan` finds is above its proved bounds, over models, networks and sizes.

Two gaps per case, each with its own proof: to the bound of uniform strategies (rings, even cuts, usual buckets and
placement), and to the bound of any choice (uneven cuts, recomputation layer by layer, any collectives, orders and
placements). What counts is the largest gap of each sort of network.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from measure import machine, options, summary, table
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.hardware.networks import on_network
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.study import answer

FULL, SHARED, THIN = "full bisection", "shared NICs", "oversubscribed"


@dataclass(frozen=True)
class Case:
    """A model and a batch on so many servers."""

    model: str
    servers: str
    batch: int
    sequence: int | None


CASES = (
    Case("gpt2-xl", "dgx-h100:4", 64, 1024),
    Case("bert-large", "dgx-h100:4", 1024, 512),
    Case("resnet50", "dgx-h100:4", 2048, None),
    Case("vgg16", "dgx-h100:4", 2048, None),
    Case("llama2-7b", "dgx-h100:8", 256, 4096),
    Case("llama2-13b", "dgx-a100:8", 256, 4096),
    Case("llama3-8b", "dgx-h100:16", 256, 8192),
    Case("mixtral-8x7b", "dgx-h100:16", 512, 4096),
    Case("llama2-70b", "dgx-a100:32", 512, 4096),
    Case("llama3-70b", "dgx-h100:64", 1024, 8192),
)
QUICK = CASES[:3]
NETWORKS = (
    ("rails", FULL, "rails", None),
    ("leaf-spine", FULL, "leaf-spine", None),
    ("fat-tree", FULL, "fat-tree", None),
    ("2 NICs per server", SHARED, "leaf-spine", 2),
    ("leaf-spine 2:1", THIN, "leaf-spine:2to1", None),
    ("leaf-spine 4:1", THIN, "leaf-spine:4to1", None),
)
"""What a network is called, of which sort it is, how it is built, and with how many NICs per server."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--model", help="only cases of this model")
    parser.add_argument("--network", help="only this network")
    chosen = parser.parse_args()
    print(f"gaps to proved bounds. {machine()}")
    rows, largest = [], {sort: [0.0, 0.0] for sort in (FULL, SHARED, THIN)}
    for case in QUICK if chosen.quick else CASES:
        if chosen.model not in (None, case.model):
            continue
        for name, sort, network, nics in NETWORKS:
            if chosen.network not in (None, name):
                continue
            row, gaps = measured(case, name, cluster_of(case, network, nics))
            largest[sort] = [max(pair) for pair in zip(largest[sort], gaps, strict=True)]
            print("  ".join(row), flush=True)
            rows.append(row)
    table("gaps to proved bounds", ["case", "network", "best", "uniform", "any choice", "CPU s", "strategy"], rows)
    for sort, (uniform, anything) in largest.items():
        summary(f"{sort}: at most {uniform:.1%} above the uniform bound, {anything:.1%} above that of any choice")


def cluster_of(case: Case, network: str, nics: int | None) -> Cluster:
    return on_network(read_cluster(case.servers, Given(nics=nics)), network)


def measured(case: Case, network: str, cluster: Cluster) -> tuple[list[str], tuple[float, float]]:
    began = time.process_time()
    found = answer(PlannerQuestion(case.model, cluster, case.batch, case.sequence))
    seconds = found.best.seconds
    gaps = max(0.0, seconds / found.bound.uniform_s - 1), found.bound.gap(seconds)
    return [
        f"{case.model} on {cluster.gpus} GPUs", network, f"{seconds:.4g} s", f"{gaps[0]:.1%}", f"{gaps[1]:.1%}",
        f"{time.process_time() - began:.0f}", found.best.said(),
    ], gaps  # fmt: skip


if __name__ == "__main__":
    main()
