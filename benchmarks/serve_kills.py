"""Kill the service again and again while 16 clients work with it, until so many operations were acknowledged.

python benchmarks/serve_kills.py --operations 100000 --store sqlite
python benchmarks/serve_kills.py --operations 100000 --store postgres

The service is `ropewalk serve` in a process of its own, spoken to over its Unix socket. It dies by SIGKILL, half of the
time at fail points inside operations (between two operations of a batch, between two statements of its transaction,
before and after the commit, between two acknowledgements, in the middle of the bytes of one), else at any time. After
every kill what is left in the store is compared with what clients were told. PostgreSQL is a server of our own, started
and stopped here.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

import postgres_server
from killed_service import Harness

SHOWN = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=5_000)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longer", type=float, default=1.0, help="so many times as long between two kills")
    parser.add_argument("--minutes", type=float, default=600.0, help="at most")
    parser.add_argument("--rules", action="store_true", help="put rules on devices, too, and look for stray ones")
    parser.add_argument("--broken", action="store_true", help="acknowledge before the commit: violations are expected")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ropewalk-kills-"))
    began = time.time()
    try:
        with _database(asked.store, folder) as database:
            harness = Harness(
                folder, database, seed=asked.seed, broken=asked.broken, rules=asked.rules, longer=asked.longer
            )
            while harness.report.acknowledged < asked.operations and time.time() - began < asked.minutes * 60:
                before = len(harness.ledger.violations)
                harness.round()
                for violation in harness.ledger.violations[before:]:
                    print(f"VIOLATION after kill {harness.report.kills.total()}: {violation}", flush=True)
                if harness.report.kills.total() % SHOWN == 0:
                    print(f"{time.time() - began:.0f} s: {harness.report}", flush=True)
            report = harness.finish()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{asked.store}, {time.time() - began:.0f} s: {report}")
    for name, count in sorted(report.counts.items()):
        print(f"  {name}: {count}")
    for violation in report.violations[:SHOWN]:
        print(f"  VIOLATION {violation}")
    sys.exit(bool(report.violations) != asked.broken)


@contextmanager
def _database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield str(folder / "state.db")
        return
    lack = postgres_server.missing()
    if lack is not None:
        sys.exit(lack)
    with postgres_server.postgres() as url:
        yield url


if __name__ == "__main__":
    main()
