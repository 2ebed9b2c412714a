"""Which links the packets of every connection leave on: headers caught in all namespaces while connections warm up.

Every handshake is caught, and of the data a random part, which the kernel chooses before anything is copied. What
is caught are the first bytes of packets on their way out of a node, so a packet is seen once on every link it takes.
"""

from __future__ import annotations

import ctypes
import selectors
import socket
import struct
from collections import Counter
from contextlib import suppress

from ropewalk.lab.job import FIRST_PORT, PORT
from ropewalk.lab.namespaces import held, inside

ONE_IN = 4
"""Data packets of which one is caught; a power of two."""
_ATTACH_FILTER, _FORCE_BUFFER = 26, 33
_EVERYTHING, _IP = 0x0003, 0x0800
"""Protocols: packets on their way out are shown only to those who ask for all of them."""
_BUFFER_BYTES = 8 << 20
_HEADERS = 64
_AT_ONCE = 256
_LOAD_BYTE, _LOAD_HALF, _LOAD_WORD = 0x30, 0x28, 0x20
_LOAD_BYTE_AFTER, _LOAD_HALF_AFTER, _LENGTH_OF_IP = 0x50, 0x48, 0xB1
_IS, _HAS, _AND, _RETURN = 0x15, 0x45, 0x54, 0x06
_PROTOCOL, _DIRECTION, _RANDOM = 0xFFFFF000, 0xFFFFF000 + 4, 0xFFFFF000 + 56
_OUTGOING, _TCP, _FRAGMENT, _SYN = 4, 6, 0x1FFF, 0x02

_FILTER = (
    (_LOAD_WORD, 0, 0, _PROTOCOL),
    (_IS, 0, 14, _IP),
    (_LOAD_WORD, 0, 0, _DIRECTION),
    (_IS, 0, 12, _OUTGOING),
    (_LOAD_BYTE, 0, 0, 9),
    (_IS, 0, 10, _TCP),
    (_LOAD_HALF, 0, 0, 6),
    (_HAS, 8, 0, _FRAGMENT),
    (_LENGTH_OF_IP, 0, 0, 0),
    (_LOAD_HALF_AFTER, 0, 0, 2),
    (_IS, 0, 5, PORT),
    (_LOAD_BYTE_AFTER, 0, 0, 13),
    (_HAS, 4, 0, _SYN),
    (_LOAD_WORD, 0, 0, _RANDOM),
    (_AND, 0, 0, ONE_IN - 1),
    (_IS, 1, 0, 0),
    (_RETURN, 0, 0, 0),
    (_RETURN, 0, 0, _HEADERS),
)
"""(operation, jump if so, jump if not, value): outgoing TCP to the port of ranks, all handshakes and some data."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("operations", ctypes.c_void_p))


class Capture:
    """Catches headers in every namespace of a lab until it is closed."""

    def __init__(self, holder: int, nodes: int) -> None:
        self._found: Counter[tuple[int, int, str]] = Counter()
        self._selector = selectors.DefaultSelector()
        for node in range(nodes):
            with inside(held(holder, node)):
                taps = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERYTHING))
            _attach(taps)
            taps.setblocking(False)
            self._selector.register(taps, selectors.EVENT_READ, node)

    def until_readable(self, descriptor: int) -> list[tuple[int, int, str, int]]:
        """Catch until there is something to read; (connection, node, interface, packets), the numbers of connections
        told by their ports."""
        self._selector.register(descriptor, selectors.EVENT_READ, -1)
        while True:
            ready = self._selector.select()
            for key, _ in ready:
                if key.data >= 0:
                    self._read(key.fileobj, key.data)
            if any(key.data < 0 for key, _ in ready):
                break
        for key in list(self._selector.get_map().values()):
            if key.data >= 0:
                self._read(key.fileobj, key.data)
                key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        return [(*where, packets) for where, packets in sorted(self._found.items())]

    def _read(self, taps: object, node: int) -> None:
        assert isinstance(taps, socket.socket)
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                packet, (name, *_) = taps.recvfrom(_HEADERS)
                header = 4 * (packet[0] & 0xF)
                (port,) = struct.unpack_from("!H", packet, header)
                self._found[port - FIRST_PORT, node, name] += 1


def _attach(taps: socket.socket) -> None:
    """Let the kernel throw away what is not asked for."""
    operations = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in _FILTER))
    program = _Program(len(_FILTER), ctypes.addressof(operations))
    taps.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, bytes(program))
    with suppress(OSError):  # in a user namespace the usual buffer has to do
        taps.setsockopt(socket.SOL_SOCKET, _FORCE_BUFFER, _BUFFER_BYTES)
