"""A process that works inside the namespaces of a lab, as the command that started it sees it.

with LabProcess.hold(nodes=3) as holder:
    holder.ask(batches=[(0, "ip", ["link set lo up"])])
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ropewalk.errors import LabError
from ropewalk.lab.machine import MachineUse
from ropewalk.lab.netlink import Counted
from ropewalk.lab.worker import STOP

if TYPE_CHECKING:
    from ropewalk.lab.job import LabJob

Caught = tuple[int, int, str, int]
"""Connection, node, interface, packets that left there."""
Stall = tuple[int, float, float]
"""Task, seconds after the start of the run from which on nothing was heard of it, and until when."""
Batch = tuple[int, str, list[str]]
"""Node, `ip` or `tc`, lines."""
WORKER = "ropewalk.lab.worker"
_NET_ADMIN, _SYS_ADMIN = 12, 21
"""Bits of capabilities(7)."""
TEMPORARY = "-"
"""What stands in place of a document for labs that end with the process that made them."""


@dataclass(frozen=True)
class LinkSamples:
    """What interfaces had sent at some moments of a run."""

    at_s: tuple[tuple[float, ...], ...]
    """By moment and end: namespaces are looked at one after the other."""
    ends: tuple[tuple[int, str], ...]
    """Node and interface."""
    sent_bytes: tuple[tuple[int, ...], ...]
    """By moment and end, since the run began."""
    waiting_bytes: tuple[tuple[int, ...], ...] = ()
    """In the queue of each end at each moment."""


@dataclass(frozen=True)
class LabRun:
    """One run of a job: seconds after its start at which every task began and ended."""

    start: tuple[float, ...]
    end: tuple[float, ...]
    wrong: tuple[str, ...]
    """What is wrong with the data afterwards."""
    machine: MachineUse
    samples: LinkSamples
    stalls: tuple[Stall, ...] = ()
    """Transfers of which nothing was heard for long, in the order in which they went on."""

    @property
    def seconds(self) -> float:
        return max(self.end, default=0.0)


class JobStuck(LabError):
    """A job that did not end in its time, with the transfers that are under way: (task, silent since)."""

    def __init__(self, what: str, silent: tuple[tuple[int, float], ...]) -> None:
        super().__init__(f"the job did not finish: {what}: is a link down? See `ropewalk lab status --name NAME`")
        self.what, self.silent = what, silent


class KernelRefusal(LabError):
    """A step that the kernel, `ip` or `tc` refused."""


class LabProcess:
    """A worker and the line to it; without `keep` it ends with the block, or with us."""

    def __init__(self, *arguments: str) -> None:
        require_tools()
        self._kept = False
        self._owed = 1
        """Answers that were not read: one greets us, and one stays behind where a wait for it is interrupted."""
        self._document = arguments[-1]
        self._nodes = int(arguments[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", WORKER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        try:
            first = self._answer()
        except BaseException:
            self.close()
            raise
        self.holder: int = first["holder"]
        self.inodes: tuple[int, ...] = tuple(first["inodes"])

    @classmethod
    def hold(cls, nodes: int, document: str = TEMPORARY) -> Self:
        """Make the namespaces of so many nodes: in a user namespace of their own where we are not root.

        The process names the document of its lab as its last argument, by which it is found.
        """
        return cls("hold", str(nodes), "user" if needs_user_namespace() else "root", document)

    @classmethod
    def enter(cls, nodes: int, holder: int, document: str = TEMPORARY) -> Self:
        """Work in the namespaces that a holder keeps."""
        return cls("enter", str(nodes), str(holder), document)

    def beside(self) -> LabProcess:
        """Another process in the same namespaces, which works while this one is busy."""
        return LabProcess.enter(self._nodes, self.holder, self._document)

    def ask(
        self, *, batches: Sequence[Batch] = (), settings: Sequence[tuple[int, Mapping[str, str]]] = ()
    ) -> list[str]:
        """Write settings, then run batches side by side; what each of them printed."""
        self._tell({"batches": batches, "settings": settings})
        printed: list[str] = self._answer()["printed"]
        return printed

    def connect(self, job: LabJob) -> None:
        """Make the connections of a job; they stay for all its runs."""
        self._tell({"job": base64.b64encode(pickle.dumps(job)).decode("ascii")})
        self._answer()

    def run(self, limit_s: float) -> LabRun:
        """Run the job once; refused where it is not done in this time."""
        self._tell({"run": limit_s})
        try:
            answer = self._answer()
        except KeyboardInterrupt:
            self._stop()
            raise
        if "stuck" in answer:
            raise JobStuck(answer["stuck"], tuple((task, since) for task, since in answer["silent"]))
        samples = answer["samples"]
        return LabRun(
            tuple(answer["start"]),
            tuple(answer["end"]),
            tuple(answer["wrong"]),
            MachineUse(**answer["machine"]),
            LinkSamples(
                tuple(map(tuple, samples["at_s"])),
                tuple((node, name) for node, name in samples["ends"]),
                tuple(map(tuple, samples["sent_bytes"])),
                tuple(map(tuple, samples["waiting_bytes"])),
            ),
            tuple((task, since, until) for task, since, until in answer["stalls"]),
        )

    def count(self) -> dict[tuple[int, str], Counted]:
        """What every interface with a queue has sent, by node and name."""
        self._tell({"count": True})
        return {(node, name): Counted(*values) for node, name, *values in self._answer()["counted"]}

    def capture(self) -> None:
        """Begin to catch headers of packets, of which `caught` is the end."""
        self._tell({"capture": True})
        self._answer()

    def caught(self) -> list[Caught]:
        """Connection, node, interface and packets that were caught there."""
        self._tell({"caught": True})
        return [(connection, node, name, packets) for connection, node, name, packets in self._answer()["caught"]]

    def retransmitted(self) -> int:
        """Segments that TCP has sent again, in all namespaces."""
        self._tell({"retransmitted": True})
        return int(self._answer()["retransmitted"])

    def keep(self) -> None:
        """Let the process and its namespaces live on without us."""
        self._tell({"keep": True})
        self._answer()
        self._kept = True

    def close(self) -> None:
        """End the process, unless it keeps a lab."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        if self._kept:
            self._process.returncode = 0  # nobody waits for it any more
        else:
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tell(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        while self._owed:
            self._line()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        self._owed += 1

    def _stop(self) -> None:
        """Have the worker give up the run under way; it still answers."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(STOP)
            self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        self._owed -= 1
        return line

    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._line())
        if "error" in answer:
            raise KernelRefusal(f"the kernel refused a step of the lab: {answer['error']}")
        return answer

    def _ended(self) -> LabError:
        return LabError("the process inside the lab ended early (killed?): bring the lab up again")


def needs_user_namespace() -> bool:
    """Root makes network namespaces; all others, and root of a container without the rights, need a user namespace."""
    return os.geteuid() != 0 or not may_administer(Path("/proc/self/status").read_text())


def may_administer(status: str) -> bool:
    """Does the status of a process grant what namespaces, their links and queues take?

    >>> all_rights, of_docker = "CapEff:\\t000001ffffffffff", "CapEff:\\t00000000a80425fb"
    >>> may_administer(all_rights), may_administer(of_docker)
    (True, False)
    """
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return all(effective >> right & 1 for right in (_NET_ADMIN, _SYS_ADMIN))


def require_tools() -> None:
    """Refuse machines without the tools that set networks up."""
    if sys.platform != "linux":
        raise LabError("a lab needs network namespaces: run it on Linux")
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        raise LabError(f"{' and '.join(missing)} not found: install iproute2")
