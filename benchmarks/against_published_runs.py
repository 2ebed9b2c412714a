"""Against published multi-GPU runs: every row predicted, measured, and the error; then each set in one line.

python benchmarks/against_published_runs.py [--set NAME ...] [--csv FILE]    nothing is fitted while it runs
python benchmarks/against_published_runs.py --calibrate                      how the A100's host factor was found
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from attention_of_2023 import with_slower_attention
from published_runs import (
    Prediction,
    PublishedRun,
    agreement,
    fit_host_factor,
    is_calibration,
    predict,
    published_runs,
    why_not_comparable,
)

COLUMNS = [
    "id", "set", "gpus", "what", "measured_s", "predicted_s", "error", "compute_s", "exposed_s", "bubble_s", "note",
]  # fmt: skip
HOST_FACTORS = [1 + step / 20 for step in range(61)]
SHORT = 2048
"""Tokens up to which attention is a small part of a step."""


def main() -> None:
    names = list(dict.fromkeys(run.set for run in published_runs()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=names, default=names, help="which sets; all unless given")
    parser.add_argument("--csv", type=Path, help="write the rows to this file as well")
    parser.add_argument("--calibrate", action="store_true", help="fit the host factor of the A100 anew and stop")
    chosen = parser.parse_args()
    if chosen.calibrate:
        best, errors = fit_host_factor(HOST_FACTORS)
        for factor, error in errors.items():
            print(f"host_factor {factor:4.2f}   root mean square of log errors {error**0.5:.4f}")
        print(f"best: {best:.2f}")
        return
    rows: list[list[str]] = []
    lines: list[str] = []
    for name in chosen.set:
        print(f"\n=== {name}")
        found: list[Prediction] = []
        for run in published_runs(name):
            prediction = predict(run)
            rows.append(_row(run, prediction))
            print("  ".join(text for text in rows[-1] if text), flush=True)
            if prediction is not None:
                found.append(prediction)
        lines += _lines(name, found)
    print("\n=== summary")
    print("\n".join(lines))
    if chosen.csv:
        with chosen.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def _row(run: PublishedRun, found: Prediction | None) -> list[str]:
    note = why_not_comparable(run) or ("calibration" if is_calibration(run) else "")
    start = [run.id, run.set, str(run.gpus), run.said, f"{run.measured_s:.6g}"]
    if found is None:
        return [*start, "", "", "", "", "", note]
    parts = [
        f"{seconds:.4g}" if found.compute_s else "" for seconds in (found.compute_s, found.exposed_s, found.bubble_s)
    ]
    return [*start, f"{found.seconds:.6g}", f"{found.error:+.4f}", *parts, note]


def _lines(name: str, found: Sequence[Prediction]) -> list[str]:
    """One line for the set, and one for each part of it that must be read apart."""
    other = [one for one in found if why_not_comparable(one.run)]
    fair = [one for one in found if not why_not_comparable(one.run)]
    parts = {
        "calibrated on": [one for one in fair if is_calibration(one.run)],
        "not used for calibration": [one for one in fair if not is_calibration(one.run)],
        "not comparable": other,
    }
    if name == "llm-foundry":
        for gpu in ("a100", "h100"):
            mine = [one for one in fair if one.run.accelerator.startswith(gpu)]
            parts[f"{gpu}, up to {SHORT} tokens"] = [one for one in mine if one.run.sequence <= SHORT]
            parts[f"{gpu}, more than {SHORT} tokens"] = [one for one in mine if one.run.sequence > SHORT]
        factors, slower = with_slower_attention(fair)
        said = ", ".join(f"{gpu} x {factor:g}" for gpu, factor in factors.items())
        parts[f"if attention were slower ({said}), rows not fitted"] = slower
    return [_line(f"{name}: {part}", rows) for part, rows in parts.items() if rows]


def _line(title: str, rows: Sequence[Prediction]) -> str:
    seen = agreement(rows)
    return f"{title:100} n {seen.rows:4}  MAPE {seen.mape:6.1%}  mean {seen.mean:+6.1%}  max {seen.worst:6.1%}"


if __name__ == "__main__":
    main()
