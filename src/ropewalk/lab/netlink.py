"""What queues have sent, read from the kernel itself: one small request per namespace, also while a job runs."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ropewalk.lab.namespaces import held, inside

_MESSAGE = struct.Struct("=IHHII")
_TRAFFIC_CONTROL = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
_BASIC, _QUEUE = struct.Struct("=QI"), struct.Struct("=IIIII")
_GET_QUEUES, _NEW_QUEUE, _DONE = 38, 36, 3
_REQUEST_ALL = 0x301
_ROOT = 0xFFFFFFFF
_STATISTICS, _OF_BYTES, _OF_QUEUE = 7, 1, 3
_TYPE_BITS = 0x3FFF
_ASK = _MESSAGE.pack(_MESSAGE.size + _TRAFFIC_CONTROL.size, _GET_QUEUES, _REQUEST_ALL, 1, 0) + _TRAFFIC_CONTROL.pack(
    0, 0, 0, 0, 0
)


@dataclass(frozen=True)
class Counted:
    """What a link has sent since it was built."""

    sent_bytes: int
    packets: int
    dropped: int
    waiting_bytes: int


class RawCounters(NamedTuple):
    """What the kernel answered in one namespace, to be read later."""

    at: float
    """When, as `time.perf_counter` has it: a thread that gives way to others may be asking for long."""
    data: bytes


class QueueCounters:
    """A line to the kernel in each of some namespaces."""

    def __init__(self, holder: int, nodes: int) -> None:
        self._lines: list[tuple[int, socket.socket, dict[int, str]]] = []
        for node in range(nodes):
            with inside(held(holder, node)):
                line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                names = dict(socket.if_nameindex())
            self._lines.append((node, line, names))

    def close(self) -> None:
        for _, line, _ in self._lines:
            line.close()

    def raw(self) -> list[RawCounters]:
        """What the kernel answers in every namespace, one after the other."""
        return [_asked(line) for _, line, _ in self._lines]

    def read(self, answers: list[RawCounters]) -> dict[tuple[int, str], Counted]:
        """Counters of the outermost queue of every interface that was there at first, by node and name."""
        found = {}
        for (node, _, names), answer in zip(self._lines, answers, strict=True):
            for index, counted in _queues(answer.data):
                if index in names:
                    found[node, names[index]] = counted
        return found

    def times(self, answers: list[RawCounters]) -> dict[int, float]:
        """When each node was looked at."""
        return {node: answer.at for (node, *_), answer in zip(self._lines, answers, strict=True)}


def _asked(line: socket.socket) -> RawCounters:
    line.send(_ASK)
    at = time.perf_counter()  # the kernel counts while it takes the request, before anybody reads the answer
    whole = b""
    while True:
        part = line.recv(1 << 16)
        whole += part
        if any(kind == _DONE for kind, _ in _messages(part)):
            return RawCounters(at, whole)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _MESSAGE.size <= len(data):
        length, kind, *_ = _MESSAGE.unpack_from(data, at)
        yield kind, data[at + _MESSAGE.size : at + length]
        at += (length + 3) & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        found[kind & _TYPE_BITS] = data[at + _ATTRIBUTE.size : at + length]
        at += (max(length, _ATTRIBUTE.size) + 3) & ~3
    return found


def _queues(answer: bytes) -> Iterator[tuple[int, Counted]]:
    """(interface, counters) of the queues that stand directly in front of an interface."""
    for kind, body in _messages(answer):
        if kind != _NEW_QUEUE:
            continue
        _, index, _, parent, _ = _TRAFFIC_CONTROL.unpack_from(body)
        statistics = _attributes(_attributes(body[_TRAFFIC_CONTROL.size :]).get(_STATISTICS, b""))
        if parent == _ROOT and _OF_BYTES in statistics:
            sent, packets = _BASIC.unpack_from(statistics[_OF_BYTES])
            _, waiting, dropped, _, _ = _QUEUE.unpack_from(statistics[_OF_QUEUE])
            yield index, Counted(sent, packets, dropped, waiting)
