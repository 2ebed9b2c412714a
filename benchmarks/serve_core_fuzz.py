"""A million random operations on the controller's core, with every invariant checked after each of them.

python benchmarks/serve_core_fuzz.py --operations 1000000

Walks of a few thousand operations begin on empty clusters of several shapes under every policy. After each operation:
no GPU and no link in two jobs, none leaked, all counts right, the queue in its order, the reason of the first waiting
job true; a refusal has changed nothing; a twin that carries out the same log, and comes back from its documents now and
then, answers the same. At the end of a walk everything ends and nothing may be left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from serve_walk import POLICIES, Walk

from ropewalk.serve.settings import Settings
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES as POLICY_TABLE

PLANTS = (
    ("leaf-spine:4x8x8", 4), ("leaf-spine:6x4x4x2", 2), ("leaf-spine:3x8x8x2", 4), ("leaf-spine:8x16x16", 8),
    ("fat-tree:4", 1), ("fat-tree:8", 2), ("rails:8x4x4", 4),
)  # fmt: skip
LENGTH = 2_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first walk")
    asked = parser.parse_args()
    began, done, walks = time.time(), 0, 0
    counts: Counter[str] = Counter()
    while done < asked.operations:
        seed = asked.seed + walks
        walk = _walk(seed)
        try:
            for _ in range(min(LENGTH, asked.operations - done)):
                walk.step()
            walk.finish()
        except BaseException:
            print(f"seed {seed}, operation {len(walk.log)}: {walk.log[-1]}", flush=True)
            raise
        done += len(walk.log)
        walks += 1
        counts += walk.counts
        if walks % 20 == 0:
            print(f"{done} operations, {walks} walks, {done / (time.time() - began):.0f} per second", flush=True)
    print(f"{done} operations in {walks} walks, {time.time() - began:.0f} s, no invariant broken")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")


def _walk(seed: int) -> Walk:
    shape, size = PLANTS[seed % len(PLANTS)]
    made = plant(shape, gpus_per_server=size)
    fitting = tuple(name for name in POLICIES if POLICY_TABLE.refusal(name, (), made) is None)
    name = fitting[seed // len(PLANTS) % len(fitting)]
    written = not (POLICY_TABLE.named(name).optical and made.cores)  # circuits between pods have no rules to wait for
    return Walk(made, Settings(name, keep_links=written and seed % 4 < 2), seed)


if __name__ == "__main__":
    main()
