"""The wire format of Protocol Buffers, as much of it as execution traces need: varints, fields, records.

A message is fields one after the other, each a key (number and wire type) and a value. A file of records is messages
with their length in front of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types: how to find the end of a value without knowing the schema."""

Raw = int | bytes
"""A value as it lies on the wire: a varint, or the bytes of everything else."""


class WireError(ValueError):
    """Bytes that are no messages; the text says what is wrong and where."""


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers as 64-bit two's complement.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    rest = number & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | BYTES) + varint(len(value)) + value


def double_field(field: int, value: float) -> bytes:
    return varint(field << 3 | FIXED64) + struct.pack("<d", value)


def packed(numbers: Iterable[int]) -> bytes:
    """Repeated numbers in one value."""
    return b"".join(map(varint, numbers))


def record(message: bytes) -> bytes:
    """A message with its length in front."""
    return varint(len(message)) + message


def records(data: bytes) -> list[bytes]:
    """The messages of a file of records.

    >>> records(record(b"one") + record(b""))
    [b'one', b'']
    """
    found = []
    at = 0
    while at < len(data):
        begin = at
        length, at = _varint_at(data, at)
        if at + length > len(data):
            missing = at + length - len(data)
            raise WireError(f"the record at byte {begin} is truncated: {missing} of its {length} bytes are missing")
        found.append(data[at : at + length])
        at += length
    return found


def fields(message: bytes) -> list[tuple[int, int, Raw]]:
    """All fields of a message: (number, wire type, value)."""
    found: list[tuple[int, int, Raw]] = []
    at, end = 0, len(message)
    while at < end:
        key, at = _varint_at(message, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint_at(message, at)
            found.append((key >> 3, kind, value))
            continue
        if kind == BYTES:
            length, at = _varint_at(message, at)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"field {key >> 3} has wire type {kind}, which no trace uses")
        if at + length > end:
            raise WireError(f"field {key >> 3} reaches {at + length - end} bytes beyond the end of its message")
        found.append((key >> 3, kind, message[at : at + length]))
        at += length
    return found


def unpacked(data: bytes) -> list[int]:
    """The numbers of a packed value."""
    found = []
    at = 0
    while at < len(data):
        value, at = _varint_at(data, at)
        found.append(value)
    return found


def signed(number: int) -> int:
    """A 64-bit two's complement number as a signed one."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + 1
        shift += 7
    raise WireError(f"the number at byte {at} has no end" + (": the data is truncated" if at + 10 > len(data) else ""))
