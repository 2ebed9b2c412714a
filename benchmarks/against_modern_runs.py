"""Against published runs on Hopper and Blackwell: every row that can be said, predicted beside measured; then each set.

`python benchmarks/against_modern_runs.py [--set WORD …] [--only ID …] [--full-clock] [--calculon FOLDER]`: sets whose
name has all these words. Nothing is fitted while it runs, and no constant was fitted to a row. SimuMax's own
predictions stand beside ours where its authors published them, Calculon's where it can be asked
(`modern_calculon.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

import modern_calculon
from calculon_answers import GET, Calculon
from modern_runs import ModernRun, modern_runs

EIGHT_BITS = ("fp8", "mxfp8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", default=[], help="words of the names of sets, such as: H100 dense")
    parser.add_argument("--only", nargs="+", help="ids of rows; all unless given")
    parser.add_argument("--full-clock", action="store_true", help="GPUs that draw what they like")
    parser.add_argument("--calculon", type=Path, help=f"a checkout of Calculon: {GET}")
    parser.add_argument("--calculon-python", default=sys.executable, help="a Python with numpy, psutil and pandas")
    chosen = parser.parse_args()
    calculon = Calculon(chosen.calculon, chosen.calculon_python) if chosen.calculon else None
    errors: dict[str, list[float]] = defaultdict(list)
    simumax: list[float] = []
    theirs: list[float] = []
    unasked: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for run in modern_runs():
        if (chosen.only and run.id not in chosen.only) or not set(chosen.set) <= set(run.set.split()):
            continue
        if run.why_not():
            missing[run.why_not()] += 1
            continue
        errors[run.set].append(_predicted(run, held=not chosen.full_clock))
        if run.simumax_s:
            simumax.append(run.simumax_s / run.seconds - 1)
        if calculon is not None:
            _ask(calculon, run, theirs, unasked)
    print("\n=== by set")
    for name, several in sorted(errors.items()):
        print(_line(name, several))
    together: dict[str, list[float]] = defaultdict(list)
    for name, several in sorted(errors.items()):
        for wider in _counted_with(*name.split()):
            together[wider] += several
    for name, several in sorted(together.items()):
        print(_line(name, several))
    print(_line("all", [error for several in errors.values() for error in several]))
    if simumax:
        print(_line("SimuMax, rows whose predictions it publishes", simumax))
    for reason, many in missing.most_common():
        print(f"{many} rows: {reason}")
    if calculon is not None:
        print(_line("Calculon, rows that it can be asked about", theirs))
        print("Calculon, others:", ", ".join(f"{reason} {many}" for reason, many in unasked.most_common()))


def _counted_with(gpu: str, sort: str, precision: str) -> Iterator[str]:
    """Several sets together, as docs/validation.md counts them."""
    yield f"{gpu}, all rows"
    yield f"{sort}, all rows"
    if gpu in ("H100", "B200"):
        yield "H100 and B200, all rows"
    if precision in EIGHT_BITS:
        yield "8 bits, all rows"
    if sort == "experts":
        yield f"{gpu} experts, all rows"


def _ask(calculon: Calculon, run: ModernRun, errors: list[float], unasked: Counter[str]) -> None:
    """Calculon's error, or why it has none."""
    reason = modern_calculon.why_not(run)
    seconds = None if reason else modern_calculon.predicted_s(calculon, run)
    if seconds is None:
        unasked[reason or "refused"] += 1
        return
    errors.append(seconds / run.seconds - 1)
    print(f"{run.id}  Calculon {seconds:.4g} s  {errors[-1]:+.1%}")


def _predicted(run: ModernRun, *, held: bool) -> float:
    seconds = run.predicted_s(held=held)
    error = seconds / run.seconds - 1
    theirs = f"  SimuMax {run.simumax_s / run.seconds - 1:+.1%}" if run.simumax_s else ""
    print(
        f"{run.id}  {run.gpus:4} {run.accelerator:9} {run.precision:6}  {run.said:70}  measured {run.seconds:.4g} s  "
        f"predicted {seconds:.4g} s  {error:+.1%}{theirs}",
        flush=True,
    )
    return error


def _line(title: str, errors: list[float]) -> str:
    if not errors:
        return f"{title:45} no rows"
    mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
    return (
        f"{title:45} n {len(errors):3}  mean error {mean:6.1%}  bias {bias:+6.1%}  worst {max(map(abs, errors)):6.1%}"
    )


if __name__ == "__main__":
    main()
