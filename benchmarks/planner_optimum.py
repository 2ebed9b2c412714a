"""Small random searches against their whole space: is anything faster than what `ropewalk plan` answers?

Two sorts: degrees alone, where every strategy that fits is simulated; and all strands, where every strategy with every
cut, placement, bucket size and collective of every kind of group is simulated whose replay is shorter than the answer.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from small_searches import searched, small_question, uniform_search

from measure import machine, options, summary


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--cases", type=int, default=200, help="random cases of each sort")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + (4 if chosen.quick else chosen.cases))
    print(f"small searches against their whole space. {machine()}")
    degrees_alone(seeds)
    all_strands(seeds)


def degrees_alone(seeds: range) -> None:
    began, optimal, steps = time.process_time(), 0, 0
    for seed in seeds:
        found, every = uniform_search(seed)
        optimal += found.complete and bool(found.seconds[found.best] <= every.min() * (1 + 1e-12))
        steps += len(every)
    cpu_s = time.process_time() - began
    summary(f"degrees alone: {optimal} of {len(seeds)} are the optimum of all {steps} steps, {cpu_s:.0f} CPU s")


def all_strands(seeds: range) -> None:
    began, optimal, bounded, simulated = time.process_time(), 0, 0, 0
    for seed in seeds:
        everything = searched(small_question(seed))
        best = everything.answer.best
        faster = min(everything.faster(), key=lambda one: one.seconds, default=None)
        bounded, simulated = bounded + everything.bounded, simulated + everything.simulated
        if faster is None:
            optimal += 1
            continue
        print(f"seed {seed}: {best.said()} takes {best.seconds / faster.seconds - 1:.2%} longer than {faster.said()}")
    cpu_s = time.process_time() - began
    summary(
        f"all strands: {optimal} of {len(seeds)} are the optimum, by {bounded} bounds and {simulated} simulations of "
        f"what they left, {cpu_s:.0f} CPU s"
    )


if __name__ == "__main__":
    main()
