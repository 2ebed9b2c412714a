"""Keeps the daemons of a Slurm cluster on one machine, and ends every one of them with everything they started.

A process of its own, so that whatever happens to the test, its standard input ends and it cleans up. Lines it obeys:
`stop ctld`, `kill ctld`, `start ctld`; it answers each with `done`.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 120.0


def descendants():
    """Everybody who was started from here, orphans too: they come back to this process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found, more = set(), {os.getpid()}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more and pid not in found}
        found |= more
    return found


def clean_up():
    deadline = time.monotonic() + PATIENCE_S
    for kind in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + (1.5 if kind == signal.SIGTERM else PATIENCE_S)
        while (left := descendants()) and time.monotonic() < min(until, deadline):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
            reap()
            time.sleep(0.05)


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end(master, kind):
    """As systemd does it: 22.05 may hang, after it has saved its state, when a prolog runs while it is stopped."""
    master.send_signal(kind)
    try:
        master.wait(20)
    except subprocess.TimeoutExpired:
        master.kill()
        master.wait()


def main(conf, nodes):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def ctld():
        return subprocess.Popen(["slurmctld", "-D", "-f", conf], **quiet)

    try:
        master = ctld()
        for node in nodes:
            subprocess.Popen(["slurmd", "-D", "-f", conf, "-N", node], **quiet)
        print("done", flush=True)
        for line in sys.stdin:
            if line == "start ctld\n":
                master = ctld()
            else:
                end(master, signal.SIGKILL if line == "kill ctld\n" else signal.SIGTERM)
            print("done", flush=True)
    finally:
        clean_up()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main(sys.argv[1], sys.argv[2:])
