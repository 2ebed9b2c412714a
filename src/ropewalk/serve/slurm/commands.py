"""Slurm's own commands: lists of jobs and nodes, and changes of single jobs. No shell stands between."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ropewalk.errors import RopewalkError
from ropewalk.serve.slurm.mark import Mark, printable
from ropewalk.serve.slurm.nodes import read_nodes
from ropewalk.serve.slurm.queue import SlurmJob, read_queue
from ropewalk.tenancy.imports.hostlist import compress

Run = Callable[[tuple[str, ...], float], str]
"""(command with its arguments, seconds it may take) -> what it printed; raises SlurmFailed."""


class SlurmFailed(RopewalkError):
    """A command of Slurm that failed or did not end in time; the next round tries again."""


def run(arguments: tuple[str, ...], timeout_s: float) -> str:
    """Run a command by itself, with nothing that a name or comment could mean to a shell."""
    try:
        ended = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
    except FileNotFoundError:
        raise SlurmFailed(f"{arguments[0]} is not installed: install Slurm's commands on this machine") from None
    except subprocess.TimeoutExpired:
        raise SlurmFailed(f"{arguments[0]} took longer than {timeout_s:g} s: see whether slurmctld answers") from None
    if ended.returncode:
        told = printable(ended.stderr.decode(errors="replace").strip(), 300)
        raise SlurmFailed(f"{' '.join(arguments[:2])} failed ({told or ended.returncode}): see slurmctld's log")
    return ended.stdout.decode(errors="replace")


@dataclass(frozen=True)
class SlurmCommands:
    """What the bridge asks of Slurm."""

    timeout_s: float = 10.0
    run: Run = field(default=run)

    def queue(self) -> tuple[SlurmJob, ...]:
        return read_queue(self.run(("squeue", "--json"), self.timeout_s))

    def nodes(self) -> Mapping[str, str]:
        """Node -> why it takes no jobs, empty where it does."""
        return read_nodes(self.run(("sinfo", "--json"), self.timeout_s))

    def mark(self, job: str, mark: Mark) -> None:
        """Change the comment of a job; of a task such as 12_3 this splits it off from its array."""
        self._update(job, f"AdminComment={mark.text()}")

    def place(self, job: str, nodes: tuple[str, ...], mark: Mark, *, settle: bool) -> None:
        """Which nodes a held job gets, and their order; `settle` its number of nodes, which tasks cannot change."""
        number = [f"NumNodes={len(nodes)}"] if settle else []
        self._update(job, *number, f"ReqNodeList={compress(nodes)}", f"AdminComment={mark.text()}")

    def hold(self, job: str, mark: Mark) -> None:
        """Keep a job from starting; the mark goes first, so that nobody takes the hold for its user's."""
        self._update(job, "ReqNodeList=", f"AdminComment={mark.text()}")
        self.run(("scontrol", "hold", job), self.timeout_s)

    def release(self, job: str) -> None:
        self.run(("scontrol", "release", job), self.timeout_s)

    def cancel(self, job: str) -> None:
        self.run(("scancel", job), self.timeout_s)

    def _update(self, job: str, *changes: str) -> None:
        self.run(("scontrol", "update", f"JobId={job}", *changes), self.timeout_s)
