"""How long users wait before anything is computed: the help text, imports, compiling and loading the kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import in_a_fresh_process, machine, options, short, summary, table, warm_up

HELP_GOAL_S = 0.3
COMMANDS = ("--help", "cost gpt2 --json", "simulate gpt2 --gpus 8 --json")
IMPORTS = ("ropewalk", "ropewalk.fabric", "ropewalk.routing", "ropewalk.collectives", "ropewalk.sim", "numba")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--first-simulation", action="store_true", help="only that, as JSON: for fresh processes")
    chosen = parser.parse_args()
    if chosen.first_simulation:
        print(json.dumps(_first_simulation()))
        return
    repeats = 2 if chosen.quick else 5
    print(f"startup: wall seconds, the least of {repeats} runs. {machine()}")
    python_s = _wall([sys.executable, "-c", "pass"], repeats)
    told = {text: _wall([str(Path(sys.executable).with_name("ropewalk")), *text.split()], repeats) for text in COMMANDS}
    help_s = told["--help"]
    rows = [["python -c pass", short(python_s)]]
    rows += [[f"ropewalk {text}", short(seconds)] for text, seconds in told.items()]
    rows += [
        [
            f"import {module} (beyond python)",
            short(_wall([sys.executable, "-c", f"import {module}"], repeats) - python_s),
        ]
        for module in IMPORTS
    ]
    table("Commands and imports", ["what", "wall s"], rows)

    cold, warm = kernel_start()
    table(
        "First simulation in a fresh process (three tiny ones, all kernels)",
        ["what", "wall s", "CPU s"],
        [
            ["cold: kernels are compiled and kept on disk", short(cold["wall_s"]), short(cold["cpu_s"])],
            ["warm: kernels are loaded from disk", short(warm["wall_s"]), short(warm["cpu_s"])],
            ["again in the same process", short(warm["again_wall_s"]), short(warm["again_cpu_s"])],
        ],
    )
    verdict = "under" if help_s < HELP_GOAL_S else "NOT under"
    summary(f"ropewalk --help answers in {short(help_s)} s ({verdict} {HELP_GOAL_S} s)")
    summary(f"first simulation: {short(cold['wall_s'])} s cold (once per installation), {short(warm['wall_s'])} s warm")


def kernel_start() -> tuple[dict[str, float], dict[str, float]]:
    """(cold, warm): the first simulation of a fresh process with an empty and with a filled kernel cache."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": folder}
        cold, warm = (in_a_fresh_process(__file__, "--first-simulation", environment=cache) for _ in range(2))
    return cold, warm


def _first_simulation() -> dict[str, float]:
    import ropewalk.sim  # noqa: F401  (imports are measured on their own)

    wall, cpu = time.perf_counter(), time.process_time()
    warm_up()
    again_wall, again_cpu = time.perf_counter(), time.process_time()
    warm_up()
    return {
        "wall_s": again_wall - wall,
        "cpu_s": again_cpu - cpu,
        "again_wall_s": time.perf_counter() - again_wall,
        "again_cpu_s": time.process_time() - again_cpu,
    }


def _wall(command: list[str], repeats: int) -> float:
    """The least of several runs after a first one, which leaves bytecode behind as an installation does."""
    least = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        kept = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "", "COLUMNS": "100"}
        for number in range(repeats + 1):
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **kept})
            if number:
                least = min(least, time.perf_counter() - began)
    return least


if __name__ == "__main__":
    main()
