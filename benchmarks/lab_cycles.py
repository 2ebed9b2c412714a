"""How fast labs come up and go, and that nothing is left of them: `python benchmarks/lab_cycles.py [times] [fabric]`.

Every cycle brings a lab up and takes it down; in every third its holder is killed before. Afterwards no process of a
lab, no document and no open file may be left; namespaces go with the processes that have them open.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from ropewalk.fabric.expression import fabric
from ropewalk.lab import state as labs
from ropewalk.lab.lifecycle import bring_up, take_down
from ropewalk.lab.process import WORKER
from ropewalk.lab.request import LabRequest, routes_by_name, scaled


def processes() -> set[str]:
    """Command lines of workers of any lab."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if WORKER.encode() in words.split(b"\0"):
            found.add(entry.parent.name)
    return found


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    built = fabric(sys.argv[2] if len(sys.argv) > 2 else "leaf-spine:4x4x4")
    network, _ = scaled(built)
    routing, routes = routes_by_name(built, "default")
    before, files, took_up, took_down = processes(), open_files(), [], []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[labs.FOLDER] = folder
        for cycle in range(times):
            began = time.perf_counter()
            state = bring_up(LabRequest("cycle", built.name, network, routing, routes))
            took_up.append(time.perf_counter() - began)
            if cycle % 3 == 1:
                os.kill(state.holder.pid, signal.SIGKILL)
            began = time.perf_counter()
            take_down("cycle")
            took_down.append(time.perf_counter() - began)
        assert labs.names() == [], labs.names()
    left, kept = processes() - before, open_files() - files
    slowest = f"(slowest {max(took_up):.2f} s)"
    print(f"{times} times {built.name}: up {median(took_up):.2f} s {slowest}, down {median(took_down):.2f} s")
    print(f"left behind: {len(left)} processes, {kept} open files")
    if left or kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
