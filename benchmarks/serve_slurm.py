"""Debian's Slurm with the controller beside it: slurmctld and 16 slurmd on this machine.

First how long `sbatch` takes with a plugin that does nothing and with ropewalk's, while the controller is up, down and
hung; then jobs that come and are cancelled while both sides are killed. Needs root and `apt-get install slurm-wlm
lua-socket curl`.

    python benchmarks/serve_slurm.py --jobs 200 --kills 8 --restarts 3
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / "reference"), str(HERE.parent / "src")]

from served_process import Served  # noqa: E402
from slurm_machine import SlurmMachine, why_not  # noqa: E402
from slurm_story import tell_story  # noqa: E402

from ropewalk.serve.slurm.files import SlurmSite, slurm_files, write_slurm_files  # noqa: E402
from ropewalk.tenancy.plant import plant  # noqa: E402

FABRIC = ("--fabric", "leaf-spine:4x8x8", "--gpus-per-server", "2")
SMALL = plant("leaf-spine:4x8x8", gpus_per_server=2)
EMPTY = """\
function slurm_job_submit(job, partitions, user_id) return slurm.SUCCESS end
function slurm_job_modify(change, record, partitions, user_id) return slurm.SUCCESS end
return slurm.SUCCESS
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=8, help="of the controller (kill -9)")
    parser.add_argument("--restarts", type=int, default=3, help="of slurmctld")
    parser.add_argument("--ctld-kills", type=int, default=1, help="kill -9 of slurmctld")
    parser.add_argument("--submissions", type=int, default=100, help="that are timed in each situation")
    parser.add_argument("--seed", type=int, default=18)
    asked = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    folder = Path(tempfile.mkdtemp(prefix="rw-bench-"))
    folder.chmod(0o755)
    try:
        if asked.submissions:
            _latencies(folder, asked.submissions)
        _story(folder, asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _latencies(folder: Path, count: int) -> None:
    print(f"sbatch, {count} submissions each, ms        p50     p95     max")
    with SlurmMachine(folder / "empty", SMALL.server_names, plugin=EMPTY) as machine:
        _timed("a plugin that does nothing", machine, count)
    site = _files(folder / "timed", pause_s=10)
    with SlurmMachine(folder / "timed" / "slurm", SMALL.server_names, site / "files") as machine:
        with _served(site, machine) as served:
            _timed("ropewalk's, controller up", machine, count)
            served.hang()
            # Before each of these the pause after a failure has passed, so that every one of them asks and waits.
            _timed("hung, first submission of a pause", machine, 3, before=lambda: time.sleep(10.1))
            _timed("hung, the others", machine, count)
            served.go_on()
        time.sleep(10.1)
        _timed("down, first submission of a pause", machine, 3, before=lambda: time.sleep(10.1))
        _timed("down, the others", machine, count)


def _timed(what: str, machine: SlurmMachine, count: int, before: Callable[[], None] | None = None) -> None:
    """No job runs meanwhile, because the partition is down; all of them are cancelled afterwards."""
    machine.ask("scontrol", "update", "PartitionName=batch", "State=DOWN")
    took = []
    for _ in range(count):
        if before is not None:
            before()
        began = time.perf_counter()
        machine.sbatch("--nodes=1", "--time=1", script="true")
        took.append(1e3 * (time.perf_counter() - began))
    machine.ask("scancel", "--user=root")
    machine.wait_for(machine.all_over, "all of them are cancelled")
    machine.ask("scontrol", "update", "PartitionName=batch", "State=UP")
    took.sort()
    p95 = took[min(len(took) - 1, int(0.95 * len(took)))]
    print(f"{what:40s} {statistics.median(took):7.1f} {p95:7.1f} {took[-1]:7.1f}", flush=True)


def _story(folder: Path, asked: argparse.Namespace) -> None:
    site = _files(folder / "story", pause_s=2)
    with (
        SlurmMachine(folder / "story" / "slurm", SMALL.server_names, site / "files") as machine,
        _served(site, machine, "--slurm-patience", "10s") as served,
    ):
        told = tell_story(
            machine, served, asked.jobs, seed=asked.seed, kills=asked.kills, restarts=asked.restarts,
            ctld_kills=asked.ctld_kills,
        )  # fmt: skip
        status, bridge = served.ask("GET", "/v1/status"), served.ask("GET", "/v1/slurm")
    print(
        f"\n{told.jobs} jobs in {told.seconds:.0f} s, {told.cancelled} cancels, controller killed {told.kills} times, "
        f"slurmctld stopped or killed {told.restarts} times; {told.without_answer} submissions without an answer"
    )
    print(f"outcomes: {told.outcomes}")
    print(f"nodes in two jobs: {len(told.violations)} of {told.polls} polls")
    print(f"left in the controller: {status['gpus']['used']} GPUs used, {status['jobs']}")
    print(f"steps of the bridge since the last kill: {bridge['steps']}, failed: {bridge['failed_steps']}")
    if told.violations or status["gpus"]["used"]:
        sys.exit(1)


def _files(folder: Path, pause_s: int) -> Path:
    site = SlurmSite(
        socket=str(folder / "rw.sock"),
        at=str(folder / "files"),
        run=str(folder / "jobs"),
        state=str(folder),
        pause_s=pause_s,
        rules_wait_s=2,
    )
    write_slurm_files(slurm_files(SMALL, site), folder / "files")
    return folder


def _served(site: Path, machine: SlurmMachine, *options: str) -> Served:
    environment = machine.environment | {"PYTHONPATH": str(HERE.parent / "src")}
    more = ("--no-auth", "--slurm", "--slurm-poll", "1s", *options)
    return Served(site / "serve", *FABRIC, *more, environment=environment, socket=site / "rw.sock")


if __name__ == "__main__":
    main()
