"""Bytes that gzip packed, unpacked within bounds: a megabyte can stand for a gigabyte of nothing."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ropewalk.documents.limits import MOST_INFLATION
from ropewalk.errors import InputError
from ropewalk.units import show_size

GZIP = b"\x1f\x8b"
PIECE = 1 << 20
_SMALL = 16 << 20
"""What any packed file may grow to, however small it is."""


def inflated(packed: Iterator[bytes], subject: str, error: type[InputError], most: int) -> Iterator[bytes]:
    """What gzip packed, some at a time, of all members of the file; refused once it grows beyond all measure.

    >>> import gzip
    >>> b"".join(inflated(iter([gzip.compress(b"one") + gzip.compress(b"two")]), "log", InputError, 100))
    b'onetwo'
    """
    taken = made = 0
    member, begun = zlib.decompressobj(31), False
    for piece in packed:
        taken += len(piece)
        rest = piece
        while rest := rest if begun else rest.lstrip(b"\0"):  # zeros may stand between members
            begun = True
            found = _next(member, rest, subject, error)
            made += len(found)
            _check(made, taken, subject, error, most)
            yield found
            rest = member.unconsumed_tail
            if member.eof:
                rest, member, begun = member.unused_data, zlib.decompressobj(31), False
    if begun:
        raise error(f"{subject} is truncated gzip data: copy the file again")


def _next(member: zlib._Decompress, packed: bytes, subject: str, error: type[InputError]) -> bytes:
    try:
        return member.decompress(packed, PIECE)
    except zlib.error:
        raise error(f"{subject} is damaged gzip data: copy the file again") from None


def _check(made: int, taken: int, subject: str, error: type[InputError], most: int) -> None:
    if made > most:
        raise error(f"{subject} unpacks to more than {show_size(most)}, the limit: give a part of it")
    if made > max(_SMALL, taken * MOST_INFLATION):
        raise error(f"{subject} unpacks to over {MOST_INFLATION} times its size, which text never does: check the file")
