"""Links of a chosen speed on one machine: a network namespace for each rank, joined by a bridge, slowed by the kernel.

Every rank gets a virtual cable to one switch. What it sends passes a token bucket of the chosen speed, so that all
ranks send at once and receive at once at that speed, as servers with such NICs do. Needs root, `ip` and `tc`.

    with SlowLinks(4, bits_per_second=500e6) as links:
        ...  # in the process of rank r: links.places[r].enter(), and only then make connections
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ropewalk.errors import DeviceError, Findings

INTERFACE = "eth0"
_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET: the kind of namespace that is entered."""
_FRAME_BYTES = 9000
"""Large frames: with small ones a machine with few cores is busy with packets before the link is full."""
_BURST_BYTES = 64 * 1024
"""What may pass at once: the largest segment of TCP, so that the kernel need not cut it up, and no more."""
_MOST_RANKS = 64


@dataclass(frozen=True)
class Namespace:
    """Where a rank lives: a namespace with one interface."""

    namespace: str
    address: str
    interface: str = INTERFACE

    def enter(self) -> None:
        """Move the calling thread here: what it opens from now on, and its future threads, use these links.

        Connections that are open stay where they are.
        """
        library = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{self.namespace}", "rb") as namespace:
            if library.setns(namespace.fileno(), _NEW_NETWORK):
                raise DeviceError(
                    f"namespace {self.namespace} cannot be entered ({os.strerror(ctypes.get_errno())}): run as root"
                )
        os.environ["GLOO_SOCKET_IFNAME"] = self.interface


class SlowLinks:
    """So many places, for the length of a `with` block."""

    def __init__(self, ranks: int, bits_per_second: float) -> None:
        findings = Findings(DeviceError, "links of limited speed")
        if not 2 <= ranks <= _MOST_RANKS:
            findings.add(f"{ranks} ranks cannot be linked: give 2 to {_MOST_RANKS}")
        if not 1e6 <= bits_per_second <= 1e11:
            findings.add(f"a speed of {bits_per_second:g} bits/s cannot be kept: give 1e6 to 1e11")
        missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
        if missing:
            findings.add(f"{' and '.join(missing)} cannot be found: install iproute2 (Linux)")
        if os.geteuid():
            findings.add("making namespaces is reserved to root: run as root")
        findings.raise_if_any()
        self.bits_per_second = bits_per_second
        self._hub = f"rw{os.getpid()}h"
        self.places = tuple(Namespace(f"rw{os.getpid()}r{rank}", f"10.77.0.{rank + 1}") for rank in range(ranks))

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _make(self) -> None:
        told("ip", "netns", "add", self._hub)
        told("ip", "-n", self._hub, "link", "add", "switch", "type", "bridge")
        told("ip", "-n", self._hub, "link", "set", "switch", "up")
        for rank, place in enumerate(self.places):
            inside = ("-n", place.namespace)
            port = f"port{rank}"
            told("ip", "netns", "add", place.namespace)
            told(
                "ip", "-n", self._hub, "link", "add", port, "type", "veth",
                "peer", "name", place.interface, "netns", place.namespace,
            )  # fmt: skip
            told("ip", "-n", self._hub, "link", "set", port, "master", "switch")
            told("ip", *inside, "link", "set", "lo", "up")
            told("ip", *inside, "addr", "add", f"{place.address}/24", "dev", place.interface)
            for command in ((*inside, "link", "set", place.interface), ("-n", self._hub, "link", "set", port)):
                told("ip", *command, "mtu", str(_FRAME_BYTES), "up")
            told(
                "tc", *inside, "qdisc", "add", "dev", place.interface, "root", "tbf",
                "rate", f"{self.bits_per_second:.0f}bit", "burst", str(_BURST_BYTES), "latency", "200ms",
            )  # fmt: skip

    def _remove(self) -> None:
        for name in (self._hub, *(place.namespace for place in self.places)):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)  # may never have been made


def told(*command: str) -> None:
    """Run `ip` or `tc`; what they refuse is an error with their words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError(
            f"links of limited speed: `{' '.join(command)}` failed ({done.stderr.strip()}): the kernel must allow "
            "network namespaces, veth, bridges and the token bucket filter"
        )
