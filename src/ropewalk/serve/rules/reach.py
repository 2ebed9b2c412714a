"""How commands get to a device: a shell there, started by a prefix such as `ssh root@leaf0`, reads a script.

Nothing is ever quoted into a command line, and a script is ended here and on the device itself when its time is over:
a command that we have given up, or that outlives us, does not come to life an hour later.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ropewalk.errors import ClusterError
from ropewalk.serve.rules.driver import DriverError, DriverTimeout

DEVICE = "{device}"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_MOST_SAID = 400


@dataclass(frozen=True)
class Reach:
    """A shell on every device."""

    prefix: Callable[[str], Sequence[str]]
    """The words that start a command on a device; none where it is this machine."""
    timeout_s: float = 5.0

    @property
    def _whole_s(self) -> int:
        return math.ceil(self.timeout_s)

    @property
    def settles_s(self) -> float:
        """A command lives so long here before it has begun there, and once more there."""
        return 2 * self._whole_s + 1

    def run(self, device: str, script: str) -> str:
        """What a script prints there; a script that fails is a DriverError with what it said."""
        prefix = list(self.prefix(device))
        # The one there is first: whoever kills it would leave what it has started alone.
        command = [*_limit(self._whole_s + 1), *prefix, *_limit(self._whole_s), "sh"]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as problem:
            raise DriverError(f"{device}: timeout cannot be started ({problem.strerror}): install coreutils") from None
        try:
            out, said = process.communicate(script, timeout=self._whole_s + 2)
        except subprocess.TimeoutExpired:
            _end(process)
            raise self._late(device) from None
        if process.returncode in (124, 137, -signal.SIGKILL):
            raise self._late(device)
        if process.returncode:
            reason = " ".join(said.split())[:_MOST_SAID] or f"exit code {process.returncode}"
            raise DriverError(f"{device}: {reason}: try the same by hand, through {shlex.join([*prefix, 'sh'])}")
        return out

    def _late(self, device: str) -> DriverTimeout:
        return DriverTimeout(
            f"{device}: no answer within {self.timeout_s:g} s: check the device, or raise the option `timeout`"
        )


def reach_by(template: str, timeout_s: float) -> Reach:
    """Reach devices by a command in which `{device}` stands for the name of each.

    >>> list(reach_by("ssh root@{device}.pod1", 5).prefix("leaf0"))
    ['ssh', 'root@leaf0.pod1']
    """
    try:
        words = shlex.split(template)
    except ValueError as problem:
        raise ClusterError(f"reach is {template!r} ({problem}): write it like 'ssh root@{DEVICE}'") from None
    if not any(DEVICE in word for word in words):
        raise ClusterError(
            f"reach is {template!r}, which is the same for all devices: write it like 'ssh root@{DEVICE}'"
        )

    def prefix(device: str) -> list[str]:
        if _NAME.fullmatch(device) is None:
            raise DriverError(f"{device!r} is not allowed in a command: name devices with letters, digits, - _ and .")
        return [word.replace(DEVICE, device) for word in words]

    return Reach(prefix, timeout_s)


def _limit(seconds: int) -> list[str]:
    return ["timeout", "-s", "KILL", str(seconds)]


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
