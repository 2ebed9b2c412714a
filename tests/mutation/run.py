"""How many small slips do the tests see? Mutants of packages, each run against the tests nearest to it.

    python tests/mutation/run.py sim collectives tenancy --mutants 30 --seed 1 --output mutants.jsonl

Mutants are drawn at random from all places of a package, in a copy of this tree. A mutant lives if every test that is
run passes: the nearest files by imports that take `--seconds` together without it. Started again with the same output,
it goes on where it was; `--again` runs those that live against more tests, `--report` prints what there is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Mutant, mutants
from nearest import Imports

ALIVE = ("lives", "no tests")
HERE = Path(__file__).resolve().parents[2]
NOT_COPIED = (".git", ".venv", "__pycache__", "out", "site", "build", "dist", "node_modules", "shared")
MOST_FILES = 12
"""So many test files are looked at for a mutant."""
STARTING_S = 4.0
"""What a run of pytest takes of itself; not counted against `--seconds`."""


class Trial:
    """A copy of the tree in which tests run."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.root = folder / "tree"
        self.seconds = seconds
        shutil.copytree(HERE, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self.imports = Imports(self.root)
        self.environment = os.environ | {"PYTHONPATH": str(self.root / "src"), "CI": "1"}
        self.environment.setdefault("NUMBA_CACHE_DIR", str(folder / "kernels"))
        self.taken: dict[str, float] = {}
        """Seconds of test files without a mutant; infinite where they do not pass as they are."""
        self.changed = 1_000_000_000

    def run(self, module: Path, mutant: Mutant) -> dict[str, Any]:
        tests, usual_s = self._tests_of(module)
        if not tests:
            return {"state": "no tests"}
        source, written = module.read_text("utf-8"), module.stat().st_mtime
        try:
            module.write_text(mutant.applied(source), "utf-8")
            self.changed += 1
            os.utime(module, (self.changed, self.changed))  # byte code goes by whole seconds and size
            code, text, seconds = self._pytest(tests, 3 * usual_s + 240)
        finally:
            module.write_text(source, "utf-8")
            os.utime(module, (written, written))
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return {
            "state": {0: "lives", None: "endless"}.get(code, "killed"),
            "by": failed[0][:200] if failed else text[-200:] if code else "",
            "tests": tests,
            "seconds": round(seconds, 1),
        }

    def _tests_of(self, module: Path) -> tuple[list[str], float]:
        chosen, together = [], 0.0
        for _, path in self.imports.tests_near(module)[:MOST_FILES]:
            name = str(path.relative_to(self.root))
            if name not in self.taken:
                code, _, seconds = self._pytest([name], self.seconds + 60)
                self.taken[name] = max(0.1, seconds - STARTING_S) if code == 0 else float("inf")
            if together + self.taken[name] <= self.seconds:
                chosen.append(name)
                together += self.taken[name]
            if together > 0.9 * self.seconds:
                break
        return chosen, together

    def _pytest(self, tests: list[str], limit_s: float) -> tuple[int | None, str, float]:
        begun = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not extras", "-p", "no:cacheprovider", "--tb=no"]
        process = subprocess.Popen(
            [*command, *tests], cwd=self.root, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = process.communicate(timeout=limit_s)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            code = None
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return code, text, time.monotonic() - begun


def drawn(root: Path, package: str, number: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Mutants of a package, at random from all there are."""
    files = sorted((root / "src" / "ropewalk" / package).rglob("*.py"))
    found = [(path, one) for path in files for one in mutants(path.read_text("utf-8"))]
    return random.Random(f"{package} {seed}").sample(found, min(number, len(found)))


def report(rows: list[dict[str, Any]]) -> None:
    """The share that lives, package by package, and every one of them."""
    for package in dict.fromkeys(row["package"] for row in rows):
        states = Counter(row["state"] for row in rows if row["package"] == package)
        living = sum(states[state] for state in ALIVE)
        share = 100 * living / states.total()
        print(f"{package}: {states.total()} mutants, {living} live ({share:.0f} %)  {dict(states)}")
    for row in rows:
        if row["state"] in ALIVE:
            print(said(row))


def said(row: dict[str, Any]) -> str:
    return f"{row['file']}:{row['line']}: {row['was']!r} -> {row['now']!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=["sim", "collectives", "tenancy"])
    parser.add_argument("--mutants", type=int, default=30, help="of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=45, help="of tests for each mutant")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then no more mutants are begun")
    parser.add_argument("--output", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--again", action="store_true", help="run those that live again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.output.read_text().splitlines()] if asked.output.exists() else []
    known = {(row["file"], row["at"], row["was"], row["now"]): row for row in rows}
    if not asked.report:
        ending = time.monotonic() + 60 * asked.minutes
        with tempfile.TemporaryDirectory(prefix="ropewalk-mutants-") as folder:
            trial = Trial(Path(folder), asked.seconds)
            of_packages = [drawn(trial.root, package, asked.mutants, asked.seed) for package in asked.packages]
            for path, mutant in [one for turn in zip_longest(*of_packages) for one in turn if one is not None]:
                name = str(path.relative_to(trial.root))
                key = (name, mutant.start, mutant.was, mutant.now)
                if key in known and not (asked.again and known[key]["state"] in ALIVE):
                    continue
                if time.monotonic() > ending:
                    break
                place = {"package": name.split("/")[2], "file": name, "line": mutant.line, "at": mutant.start}
                about = {"kind": mutant.kind, "was": mutant.was, "now": mutant.now}
                known[key] = place | about | trial.run(path, mutant)
                print(f"{known[key]['state']:8} {said(known[key])}", flush=True)
                with asked.output.open("a") as file:
                    file.write(json.dumps(known[key]) + "\n")
    report(list(known.values()))


if __name__ == "__main__":
    main()
