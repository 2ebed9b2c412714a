"""How often `ropewalk expect` names the part of a simulated cluster that was slowed.

    python benchmarks/expect_guilty.py [--cases 200] [--seed 0] [--quick]

Every case: a cluster, one cable, link, GPU or switch at 10 to 70 % of its speed, measurements of random pairs and
groups simulated on the slowed network with 4 % of noise and a deviation of up to 8 % of each kind. The guilty part
counts as named where it is the first answer; "or a tie" where no measurement tells it from the first.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))
from slowed_clusters import Case, random_case


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--cases", type=int, default=200)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--quick", action="store_true", help="10 cases")
    given = reader.parse_args()
    began, counts = time.monotonic(), Counter[str]()
    by_kind: dict[str, Counter[str]] = {}
    for number in range(10 if given.quick else given.cases):
        case = random_case(np.random.default_rng([given.seed, number]))
        outcome = _outcome(case)
        counts[outcome] += 1
        by_kind.setdefault(case.guilty.kind, Counter())[outcome] += 1
        if outcome not in ("named", "tie"):
            print(f"case {number}: {case.said}: {outcome}")
    print(f"{'guilty':<10} {'cases':>6} {'named':>7} {'or a tie':>9}")
    for kind, some in (*sorted(by_kind.items()), ("all", counts)):
        total = some.total()
        print(f"{kind:<10} {total:>6} {some['named'] / total:>7.1%} {(some['named'] + some['tie']) / total:>9.1%}")
    print(f"{time.monotonic() - began:.0f} s")


def _outcome(case: Case) -> str:
    found = case.diagnosis()
    if found.healthy or found.best is None:
        return "healthy"
    if case.guilty.name == found.best.name:
        return "named"
    if case.guilty.name in found.best.names:
        return "tie"
    return f"{found.best.name} ({found.best.score:.1f} of {found.unexplained:.1f})"


if __name__ == "__main__":
    main()
