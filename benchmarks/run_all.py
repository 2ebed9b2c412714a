"""All benchmarks, one after the other, and a summary: what `make bench` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from measure import SUMMARY, machine, options

SCRIPTS = ("startup.py", "against_simgrid.py", "against_astra_figures.py", "growth.py", "training_step.py",
           "quick_steps.py")  # fmt: skip


def main() -> None:
    chosen = options(__doc__).parse_args()
    lines: list[str] = []
    failed: list[str] = []
    for script in SCRIPTS:
        print(f"\n=== {script} {'=' * (100 - len(script))}", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(script)), *(["--quick"] * chosen.quick)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                if line.startswith(SUMMARY):
                    lines.append(f"{script.removesuffix('.py'):24}{line.removeprefix(SUMMARY).rstrip()}")
        if running.returncode:
            failed.append(script)
    print(f"\n=== summary ({machine()})")
    print("\n".join(lines))
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
