"""Whole traces on 512 to 32,768 GPUs under several policies: CPU seconds and memory of a replay.

    python benchmarks/cluster_replay.py [--quick]
    python benchmarks/cluster_replay.py --largest [--policies ecmp,vclos]    10,000 jobs on 32,768 GPUs, every policy

Every measurement has a process of its own, so that its peak memory is its own; loading the kernels is not counted.
With `--largest`, policies that need three tiers are measured on a fat-tree of as many GPUs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from measure import cpu, in_a_fresh_process, machine, options, peak_mib, short, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from cluster import SWEEPS
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES as ALL

POLICIES = ("ecmp", "source", "vclos", "ocs-vclos", "ideal")
EVERY = tuple(ALL)
LOAD = 0.8
LARGEST, LARGEST_LOAD = "synthetic_trace_32768_gpus", 0.9
LARGEST_TREE = "synthetic_trace_32768_gpus_in_pods"


def measured(name: str, policy: str, jobs: int) -> dict[str, Any]:
    """One replay, after a short one that loads the kernels."""
    sweep, load = SWEEPS[name], LARGEST_LOAD if name in (LARGEST, LARGEST_TREE) else LOAD
    sweep.study(load, 30, names=[policy])
    found, seconds = cpu(lambda: sweep.study(load, jobs, names=[policy]))
    (run,) = found.timelines
    return {
        "gpus": found.plant.gpus,
        "seconds": seconds,
        "peak_mib": peak_mib(),
        "events": run.settings["events"],
        "jct_s": run.mean_jct_s,
    }


def largest_for(policy: str) -> str:
    """The largest trace on two tiers, or on three where the policy needs them."""
    sweep = SWEEPS[LARGEST]
    refused = ALL.named(policy).applies((), plant(sweep.cluster, sweep.gpus_per_server))
    return LARGEST if refused is None else LARGEST_TREE


def largest(policies: list[str], jobs: int) -> None:
    """Every policy on the largest cluster; memory also of a quarter of the jobs."""
    rows, total = [], 0.0
    for policy in policies:
        name = largest_for(policy)
        quarter, whole = (
            in_a_fresh_process(__file__, "--one", name, policy, str(count)) for count in (jobs // 4, jobs)
        )
        seconds = whole["seconds"]
        total += seconds
        rows.append(
            (policy, SWEEPS[name].cluster, f"{seconds:.1f}", f"{1e3 * seconds / whole['events']:.2f}",
             f"{quarter['peak_mib']:.0f}", f"{whole['peak_mib']:.0f}", f"{whole['jct_s']:,.0f}")
        )  # fmt: skip
        print(rows[-1], flush=True)
    heads = ("policy", "network", "CPU s", "ms per event", "MiB, a quarter of the jobs", "MiB", "mean completion s")
    table(f"{jobs} jobs on 32,768 GPUs at load {LARGEST_LOAD} ({machine()})", heads, rows)
    summary(f"{jobs} jobs on 32,768 GPUs under {len(rows)} policies: {short(total / 60)} CPU minutes")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--one", nargs=3, help="sweep, policy and jobs: measure this and print it as JSON")
    parser.add_argument("--largest", action="store_true", help="10,000 jobs on 32,768 GPUs under every policy")
    parser.add_argument("--policies", default=",".join(EVERY), help="of --largest")
    chosen = parser.parse_args()
    if chosen.one:
        name, policy, count = chosen.one
        print(json.dumps(measured(name, policy, int(count))))
        return
    if chosen.largest:
        largest(chosen.policies.split(","), 100 if chosen.quick else 10_000)
        return
    jobs = 100 if chosen.quick else 5000
    rows = []
    for name in [name for name in SWEEPS if name not in (LARGEST, LARGEST_TREE)]:
        for policy in POLICIES:
            found = in_a_fresh_process(__file__, "--one", name, policy, str(jobs))
            seconds = found["seconds"]
            rows.append(
                (f"{found['gpus']:,}", policy, f"{seconds:.1f}", f"{1e3 * seconds / found['events']:.2f}",
                 f"{found['peak_mib']:.0f}")
            )  # fmt: skip
    title = f"replays of {jobs} jobs at load {LOAD} ({machine()})"
    table(title, ("GPUs", "policy", "CPU s", "ms per event", "MiB"), rows)
    slowest = max(float(row[2]) for row in rows)
    summary(f"{jobs} jobs on up to 8,192 GPUs: at most {short(slowest)} CPU seconds a replay")


if __name__ == "__main__":
    main()
