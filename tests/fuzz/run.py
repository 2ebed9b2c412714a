"""The fuzzer by hand, for hours: damages files of every kind and gives commands absurd options.

    python tests/fuzz/run.py --minutes 60                           # everything, other cases each time
    python tests/fuzz/run.py --only replay --first 0 --cases 5000   # these cases of the kinds of this name

Prints every finding with the case that shows it again, then a line per kind. Exit code 1 where there are findings.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import guarded
from fuzz.kinds import kinds_of_cases


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--minutes", type=float, default=1.0)
    asked.add_argument("--first", type=int, default=None, help="number of the first case; another one each time")
    asked.add_argument("--cases", type=int, default=200, help="of each kind before the next one has its turn")
    asked.add_argument("--only", default="", help="kinds whose names contain this")
    asked.add_argument("--what", choices=("all", "readers", "commands"), default="all")
    given = asked.parse_args()
    begun, tallies, seen = time.time(), {}, {}
    with tempfile.TemporaryDirectory() as place:
        kinds = kinds_of_cases(Path(place), given.what, given.only)
        os.chdir(place)  # what commands write, they write there
        first = int(begun) * 1000 if given.first is None else given.first
        while time.time() - begun < 60 * given.minutes:
            for name, attempt in kinds:
                tally, found = guarded.run(name, attempt, first, given.cases)
                tallies.setdefault(name, guarded.Tally()).add(tally)
                for finding in found:
                    if seen.setdefault(finding.kind, finding) is finding:
                        print(f"\n{finding.where}, case {finding.case}:\n{finding.what}", flush=True)
            first += given.cases
            if given.first is not None:
                break
    for name, tally in tallies.items():
        print(f"{name:24} {tally.cases:8} cases {tally.refused:8} refused {tally.accepted:8} answered")
    total = sum(tally.cases for tally in tallies.values())
    print(f"{total} cases in {time.time() - begun:.0f} s, {len(seen)} kinds of findings")
    sys.exit(bool(seen))


if __name__ == "__main__":
    main()
