"""Whole traces on 512, 2,048 and 8,192 GPUs under several policies: CPU seconds and memory of a replay.

    python benchmarks/cluster_replay.py [--quick]

Every measurement has a process of its own, so that its peak memory is its own; loading the kernels is not counted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from measure import cpu, in_a_fresh_process, machine, options, peak_mib, short, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from cluster import SWEEPS

POLICIES = ("ecmp", "source", "vclos", "ocs-vclos", "ideal")
LOAD = 0.8


def measured(name: str, policy: str, jobs: int) -> dict[str, Any]:
    """One replay, after a short one that loads the kernels."""
    sweep = SWEEPS[name]
    sweep.study(LOAD, 30, names=[policy])
    found, seconds = cpu(lambda: sweep.study(LOAD, jobs, names=[policy]))
    (run,) = found.timelines
    return {
        "gpus": found.plant.gpus,
        "seconds": seconds,
        "peak_mib": peak_mib(),
        "events": run.settings["events"],
        "jct_s": run.mean_jct_s,
    }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--one", nargs=3, help="sweep, policy and jobs: measure this and print it as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        name, policy, count = chosen.one
        print(json.dumps(measured(name, policy, int(count))))
        return
    jobs = 100 if chosen.quick else 5000
    rows = []
    for name in SWEEPS:
        for policy in POLICIES:
            found = in_a_fresh_process(__file__, "--one", name, policy, str(jobs))
            seconds = found["seconds"]
            rows.append(
                (f"{found['gpus']:,}", policy, f"{seconds:.1f}", f"{1e3 * seconds / found['events']:.2f}",
                 f"{found['peak_mib']:.0f}")
            )  # fmt: skip
    title = f"replays of {jobs} jobs at load {LOAD} ({machine()})"
    table(title, ("GPUs", "policy", "CPU s", "ms an event", "MiB"), rows)
    slowest = max(float(row[2]) for row in rows)
    summary(f"{jobs} jobs on up to 8,192 GPUs: at most {short(slowest)} CPU seconds a replay")


if __name__ == "__main__":
    main()
