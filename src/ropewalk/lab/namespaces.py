"""LabNetwork namespaces of the kernel: making them, and entering those that a holder process keeps open.

A lab has no names under /run/netns and nothing in the namespace of the machine: its namespaces exist because one
process, the holder, has them open. When the holder ends, however it ends, the kernel removes all of them with their
interfaces, routes and queues.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ropewalk.errors import LabError

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""CLONE_NEWUSER and CLONE_NEWNET of the kernel."""
FIRST_DESCRIPTOR = 100
"""The holder keeps the namespace of node n open as file descriptor 100 + n."""
ADDRESS_LABEL = "lo:lab"
"""The interface label under which a host has its address; Gloo finds it by this name."""


def held(holder: int, node: int) -> str:
    """The path under which the kernel finds the namespace of a node.

    >>> held(4711, 2)
    '/proc/4711/fd/102'
    """
    return f"/proc/{holder}/fd/{FIRST_DESCRIPTOR + node}"


def unshare(kind: int) -> None:
    """Leave the namespaces of this kind for new ones."""
    _called("unshare", kind)


def move_to(path: str, kind: int) -> None:
    """Move the calling thread into the namespace that a path of /proc names."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _called("setns", descriptor, kind)
    finally:
        os.close(descriptor)


def join_user_namespace_of(process: int) -> None:
    """Become root where a process is root, if it runs in a user namespace of its own."""
    theirs = f"/proc/{process}/ns/user"
    if os.stat(theirs).st_ino != os.stat("/proc/self/ns/user").st_ino:
        move_to(theirs, NEW_USER)


@contextmanager
def inside(path: str) -> Iterator[None]:
    """Stay in a network namespace for the length of a block: sockets and processes made there belong to it."""
    before = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        move_to(path, NEW_NETWORK)
        yield
    finally:
        _called("setns", before, NEW_NETWORK)
        os.close(before)


@dataclass(frozen=True)
class Namespace:
    """A host of a lab, as processes that enter it know it."""

    holder: int
    node: int
    address: str

    def enter(self) -> None:
        """Move the calling thread here: what it opens from now on, and its future threads, use these links.

        Connections that are open stay where they are.
        """
        try:
            move_to(held(self.holder, self.node), NEW_NETWORK)
        except OSError as problem:
            raise LabError(
                f"host {self.node} of the lab cannot be entered ({problem.strerror}): is the lab up, and was it made "
                "by the same user?"
            ) from None
        os.environ["GLOO_SOCKET_IFNAME"] = ADDRESS_LABEL


def _called(function: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
