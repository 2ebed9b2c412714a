"""Links of plain TCP connections: one to the rank behind, one from the rank before, for tensors in main memory.

Every message has a header (chunk, round, bytes), so the receiver need not know what comes next. The kernel is given
little at a time: what it has taken can no longer be overtaken by something more urgent.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
from contextlib import suppress
from fcntl import ioctl
from typing import Any

from ropewalk.execute.overlap.stream.buffer import Tensor
from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.links import LinkLost, Slot
from ropewalk.execute.overlap.stream.ring import RingPlace

_HEADER = struct.Struct("<iiq")
_GOODBYE = (-1, -1)
_TOKEN_BYTES = 16
_UNSENT_BYTES = 32 << 10
"""What the kernel may hold besides what is on the wire."""
_ADDRESS_OF_INTERFACE = 0x8915
"""SIOCGIFADDR of Linux."""


class Sockets:
    """Made by `socket_links` on all ranks at once."""

    def __init__(self, ring: RingPlace, out: socket.socket, into: socket.socket) -> None:
        self.ring = ring
        self._out = out
        self._in = into
        self._header = memoryview(bytearray(_HEADER.size))
        self._slot: Slot | None = None

    def expect(self, messages: list[Message], slot: Slot) -> None:
        self._slot = slot

    def send(self, message: Message, content: Tensor) -> None:
        data = _bytes_of(content)
        self._hand_over(_HEADER.pack(*message, len(data)), data)

    def receive(self) -> Message | None:
        self._read(self._header)
        chunk, turn, size = _HEADER.unpack(self._header)
        if (chunk, turn) == _GOODBYE:
            return None
        assert self._slot is not None, "messages are expected before they are received"
        place = _bytes_of(self._slot((chunk, turn)))
        if len(place) != size:
            raise LinkLost(
                f"rank {self.ring.before} sent {size} bytes of chunk {chunk}, and rank {self.ring.rank} expected "
                f"{len(place)}: give all ranks the same plan"
            )
        self._read(place)
        return chunk, turn

    def goodbye(self) -> None:
        self._hand_over(_HEADER.pack(*_GOODBYE, 0), memoryview(b""))

    def close(self) -> None:
        for one in (self._out, self._in):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _hand_over(self, header: bytes, data: memoryview) -> None:
        try:
            taken = self._out.sendmsg([header, data]) - len(header)
            if taken < 0:
                self._out.sendall(header[taken:])
                taken = 0
            if taken < len(data):
                self._out.sendall(data[taken:])
        except OSError as problem:
            raise self._lost(self.ring.after, problem) from None

    def _read(self, place: memoryview) -> None:
        while len(place):
            try:
                size = self._in.recv_into(place)
            except OSError as problem:
                raise self._lost(self.ring.before, problem) from None
            if not size:
                raise self._lost(self.ring.before, None)
            place = place[size:]

    def _lost(self, rank: int, problem: OSError | None) -> LinkLost:
        why = "it closed its connection" if problem is None else problem.strerror or str(problem)
        return LinkLost(
            f"rank {self.ring.rank} lost rank {rank} ({why}): check the output of rank {rank}, and restart all ranks"
        )


def socket_links(group: Any = None, *, address: str | None = None, timeout_s: float = 300.0) -> Sockets:
    """Connect the ranks of a process group in a ring; all of them call it.

    `address` is where other ranks reach this one: unless given, that of the interface which GLOO_SOCKET_IFNAME names,
    or loopback without one, for ranks on one machine. A rank whose machine is silent for `timeout_s` is lost.
    """
    import torch.distributed as dist

    ring = RingPlace(dist.get_world_size(group), dist.get_rank(group))
    own = address or _own_address()
    token = secrets.token_bytes(_TOKEN_BYTES)
    with socket.create_server((own, 0), backlog=8) as server:
        told: list[Any] = [None] * ring.ranks
        dist.all_gather_object(told, (own, server.getsockname()[1], token), group=group)
        to_address, to_port, to_token = told[ring.after]
        out = socket.create_connection((to_address, to_port), timeout=timeout_s)
        out.sendall(to_token)
        server.settimeout(timeout_s)
        into = _known(server, token, timeout_s)
    for one in (out, into):
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))
    out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return Sockets(ring, out, into)


def _known(server: socket.socket, token: bytes, timeout_s: float) -> socket.socket:
    """The first connection that knows the token; others are not from this ring."""
    while True:
        made, _ = server.accept()
        made.settimeout(timeout_s)
        told = b""
        while len(told) < len(token) and (more := made.recv(len(token) - len(told))):
            told += more
        if secrets.compare_digest(told, token):
            return made
        made.close()


def _own_address() -> str:
    name = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if not name:
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = ioctl(asking.fileno(), _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()[:15]))
        except OSError:
            raise LinkLost(
                f"there is no interface {name} with an IPv4 address, which GLOO_SOCKET_IFNAME names: give socket_links "
                "the address of this rank"
            ) from None
    return socket.inet_ntoa(answer[20:24])


def _bytes_of(tensor: Tensor) -> memoryview:
    import torch

    return memoryview(tensor.view(torch.uint8).numpy())
